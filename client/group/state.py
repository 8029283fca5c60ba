"""The state of one member of a group, and the operations that all branches use. Pure.

Laws
    The state changes by `Member.move` alone, which asserts the table of states.py.
    An operation appends its effects to `out`, in the order in which they are to be performed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Final

from rota.client.config import ConsumerConfig
from rota.client.errors import KafkaError
from rota.client.group import notes
from rota.client.group.assignors.base import Assignor, RebalanceProtocol
from rota.client.group.assignors.strategies import rebalance_protocol
from rota.client.group.effects import (
    Arm,
    CancelRequest,
    Disarm,
    Effect,
    FindCoordinator,
    FollowTopics,
    Hook,
    Note,
    RaiseInPoll,
    RefreshMetadata,
    RunHook,
    SendRequest,
)
from rota.client.group.states import TRANSITIONS, MemberState
from rota.client.group.subscription import Snapshot, Topics, topics_of
from rota.client.network.metadata import Metadata
from rota.client.types import GroupMetadata, TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.messages.join_group import JoinGroupResponse

S = MemberState
NO_GENERATION: Final = -1
NEEDS_REVOCATION: Final = "need to revoke partitions and re-join"  # to the coordinator, as Java says it
LANE = "group"  # a connection beside that of commits: a coordinator holds a JoinGroup back, and answers in order
ENDED: Final = (S.LEAVING, S.CLOSED)
# part of a generation, with no JoinGroup or SyncGroup under way: a heartbeat or a change of topics may interrupt it
MEMBER_STATES: Final = (S.ASSIGNING, S.STABLE, S.REDISCOVERING)
TIMERS: Final = ("heartbeat", "session", "poll", "hook", "retry")


@dataclass(slots=True)
class Assigned:
    """The assignment in SyncGroup's answer."""

    partitions: frozenset[TopicPartition]
    user_data: bytes | None


@dataclass(frozen=True, slots=True)
class LostGeneration:
    """A generation that the member has lost, with its unfinished work.

    A static member may be answered with the same generation: the coordinator keeps it when an instance returns.
    """

    generation: int
    owned: frozenset[TopicPartition]
    rejoin: str | None  # why the member had to join again


@dataclass(slots=True)
class Closing:
    """How far closing has come."""

    reason: str
    was_joining: bool  # what is held may be given to others meanwhile: it is lost
    committed: bool = False
    is_timed_out: bool = False
    ticket: int | None = None  # of LeaveGroup
    is_requested: bool = False


@dataclass(eq=False)
class Member:
    """One member. Tickets number requests, hooks and metadata refreshes; None: none is under way."""

    ways: ClassVar[Mapping[MemberState, frozenset[MemberState]]] = TRANSITIONS
    config: ConsumerConfig
    assignors: dict[str, Assignor]
    protocol: RebalanceProtocol
    state: MemberState = S.DOWN
    now_ms: int = 0
    out: list[Effect] = field(default_factory=list)
    # what the coordinator knows us by
    member_id: str = ""
    generation: int = NO_GENERATION
    assignor_name: str = ""  # of this generation
    # what we read
    subscription: Topics | None = None
    metadata: Metadata = field(default_factory=Metadata)
    granted: frozenset[str] = frozenset()  # topics that a leader gave us before our metadata knew them
    owned: frozenset[TopicPartition] = frozenset()
    joined_topics: frozenset[str] | None = None  # the topics of the last JoinGroup
    group_topics: frozenset[str] = frozenset()  # of all members, at the leader
    watched: Snapshot | None = None  # at the leader: the partitions that it assigned
    followed: frozenset[str] | None = frozenset()  # the topics that the cluster keeps us informed of; None: all
    # what is under way
    polling: bool = False
    rejoin: str | None = None  # why to join (again) with the next poll
    join_reason: str | None = None  # the same, of the JoinGroup that is under way
    lost: LostGeneration | None = None  # the membership that was lost last
    last_group: GroupMetadata | None = None  # the same, as commits carry it; it stays
    reason: str = ""  # of the next JoinGroup
    committed: bool = False  # before_rejoin has run for this rejoin
    coordinator: int | None = None
    is_finding: bool = False  # the coordinator
    rebalance_ticket: int | None = None  # ticket of a JoinGroup or SyncGroup
    heartbeat_ticket: int | None = None  # ticket of a Heartbeat
    refresh_ticket: int | None = None  # ticket of a metadata refresh
    is_metadata_fresh: bool = False  # a pattern was matched against fresh metadata for the next JoinGroup
    elected: JoinGroupResponse | None = None  # we lead and wait for metadata
    pending: Assigned | None = None  # to be taken over by the next poll
    hook: tuple[int, Hook] | None = None
    after_hook: KafkaError | None = None  # to be raised when the hook that runs is done
    is_backing_off: bool = False  # the retry timer is armed: neither find nor join before
    attempts: int = 0  # since the last success
    fenced: KafkaError | None = None
    closing: Closing | None = None
    armed: set[str] = field(default_factory=set)
    tickets: int = 0

    @property
    def is_due(self) -> bool:
        """Whether `poll` has something to do or to wait for. A cooperative member that holds partitions reads on
        while it joins (KIP-429)."""
        match self.state:
            case S.LEAVING | S.CLOSED:
                return False
            case S.DOWN:
                return self.subscription is not None or self.hook is not None
            case S.STABLE | S.REDISCOVERING:
                return self.rejoin is not None or self.hook is not None
            case S.DISCOVERING | S.JOINING | S.SYNCING:
                return not self.owned or self.hook is not None
            case _:
                return True

    @property
    def group(self) -> GroupMetadata:
        """For commits."""
        group, instance = self.config.group_id or "", self.config.group_instance_id
        if self.generation == NO_GENERATION:
            return GroupMetadata(group, group_instance_id=instance)
        return GroupMetadata(group, self.generation, self.member_id, instance)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that are subscribed to now."""
        if self.subscription is None:
            return frozenset()
        found = topics_of(self.subscription, self.metadata, exclude_internal=self.config.exclude_internal_topics)
        return found | self.granted

    @property
    def is_cooperative(self) -> bool:
        return self.protocol is RebalanceProtocol.COOPERATIVE

    @property
    def is_static(self) -> bool:
        return self.config.group_instance_id is not None

    # ---- operations of the branches

    def move(self, state: MemberState) -> None:
        assert state in self.ways[self.state], f"{self.state.name} -> {state.name}"
        self.state = state

    def note(self, level: str, event: str, **fields: object) -> None:
        known = {"group": self.config.group_id, "member": self.member_id, "generation": self.generation}
        self.out.append(Note(level, event, known | fields))

    def ticket(self) -> int:
        self.tickets += 1
        return self.tickets

    def send_request(self, request: Any, timeout_ms: int, *, lane: str = LANE) -> int:
        assert self.coordinator is not None
        self.out.append(SendRequest(ticket := self.ticket(), self.coordinator, request, timeout_ms, lane))
        return ticket

    def run(self, hook: Hook) -> None:
        assert self.hook is None
        self.hook = (self.ticket(), hook)
        self.out.append(RunHook(*self.hook))
        if self.closing is None:
            self.arm("hook", self.config.max_poll_interval_ms)  # a callback is the user's time, too

    def arm(self, key: str, in_ms: int) -> None:
        self.armed.add(key)
        self.out.append(Arm(key, self.now_ms + in_ms))

    def arm_session(self) -> None:
        """Restart the session timer: the coordinator has responded."""
        if self.generation != NO_GENERATION:
            self.arm("session", self.config.session_timeout_ms)

    def disarm(self, *keys: str) -> None:
        for key in keys:
            if key in self.armed:
                self.armed.discard(key)
                self.out.append(Disarm(key))

    def cancel_rebalance_request(self) -> None:
        if self.rebalance_ticket is not None:
            self.out.append(CancelRequest(self.rebalance_ticket))
        self.rebalance_ticket = self.elected = None

    def cancel_heartbeat(self) -> None:
        if self.heartbeat_ticket is not None:
            self.out.append(CancelRequest(self.heartbeat_ticket))
        self.heartbeat_ticket = None

    def back_off(self) -> None:
        """Neither find the coordinator nor join for a while, which grows with each failure in a row."""
        grown = self.config.retry_backoff_ms * 2 ** min(self.attempts, 20)
        self.attempts += 1
        self.is_backing_off = True
        self.arm("retry", min(grown, self.config.retry_backoff_max_ms))

    def find_coordinator(self) -> None:
        if self.coordinator is None and not self.is_finding and not self.is_backing_off:
            self.is_finding = True
            self.out.append(FindCoordinator())

    def refresh_metadata(self) -> None:
        self.refresh_ticket = self.ticket()
        self.out.append(RefreshMetadata(self.refresh_ticket))

    def follow_topics(self, others: Iterable[str] = ()) -> None:
        """Follow the metadata of our topics, and at the leader of the other members' topics too."""
        followed = self.subscription | frozenset(others) if isinstance(self.subscription, frozenset) else None
        if followed != self.followed:
            self.followed = followed
            self.out.append(FollowTopics(followed))

    def fail(self, error: BaseException) -> None:
        """Have `poll` raise the error; nothing else begins before the next poll."""
        self.polling = False
        self.out.append(RaiseInPoll(error))

    def request_rejoin(self, reason: str, why: str = "") -> None:
        """Join again with the next poll. `reason` is sent to the coordinator, `why` is logged."""
        self.rejoin = self.reason = reason
        self.note("info", notes.REQUEST_JOINING, reason=why or reason)

    def out_of_group(self, reason: str, *, keep_id: bool) -> None:
        """The membership is over. The owned partitions are lost with the next poll, which joins again."""
        self.note("info", notes.RESETTING, reason=reason, member_id_kept=keep_id)
        self.cancel_rebalance_request()
        self.cancel_heartbeat()
        self.disarm("heartbeat", "session")
        self.lose_generation()
        self.assignor_name, self.pending, self.watched = "", None, None
        self.committed = False
        if not keep_id:
            self.member_id = ""
        if self.state not in ENDED:
            if self.state is not S.DOWN:
                self.move(S.DOWN)
            self.request_rejoin(reason)

    def lose_generation(self) -> None:
        """Leave the generation, but keep its unfinished work (see LostGeneration)."""
        if self.generation != NO_GENERATION:
            self.last_group = self.group
            self.lost = LostGeneration(self.generation, self.owned, self.rejoin or self.join_reason)
        self.generation = NO_GENERATION

    def give_up(self, error: KafkaError, reason: str) -> None:
        """A membership is impossible now: `poll` raises the error, the next one tries again, after a wait that grows:
        polls that fail in a row send no request each."""
        self.out_of_group(reason, keep_id=True)
        self.back_off()
        self.fail(error)

    def end(self) -> None:
        """Close: cancel everything that is under way."""
        self.cancel_rebalance_request()
        self.cancel_heartbeat()
        self.disarm(*TIMERS)
        self.move(S.CLOSED)


def new_member(config: ConsumerConfig, assignors: Sequence[Assignor]) -> Member:
    """A member that is not part of its group yet. Raises ConfigError for assignors of two rebalance protocols."""
    return Member(config, {assignor.name: assignor for assignor in assignors}, rebalance_protocol(assignors))
