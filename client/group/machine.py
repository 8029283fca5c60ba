"""One membership in one group: `step` takes what happened and says what to do. No clock, no socket, no loop. Pure.

Laws
    M1  A partition that was assigned is revoked or lost exactly once before it is assigned again or the member closes.
    M2  A hook begins only while `poll` or `close` runs, and one at a time.
    M3  At most one JoinGroup or SyncGroup, and at most one Heartbeat, is waited for; each names the current generation.
        An answer that is no longer waited for changes nothing.
    M4  Once the coordinator answers well every `poll` ends, in a membership or in a failure.
    M5  After CLOSED no timer is armed, and no event does anything.

The branches: joining (giving up, discovery, JoinGroup), leading and syncing (SyncGroup), assigning (taking over),
beating (heartbeats, sessions, coordinators that are lost), watching (topics), leaving (poll timeout, close).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, assert_never

from rota.client.config import ConsumerConfig
from rota.client.errors import KafkaError
from rota.client.group import answers, assigning, notes
from rota.client.group import heartbeat as beating
from rota.client.group import join as joining
from rota.client.group import leave as leaving
from rota.client.group import metadata_watch as watching
from rota.client.group.assignors.base import Assignor, RebalanceProtocol
from rota.client.group.assignors.strategies import rebalance_protocol
from rota.client.group.effects import (
    Arm,
    Ask,
    Disarm,
    Drop,
    Effect,
    Fail,
    Find,
    Hook,
    Learn,
    Note,
    Run,
    Wake,
    Want,
)
from rota.client.group.events import (
    Answered,
    Close,
    Event,
    Found,
    HookDone,
    Hurry,
    Known,
    Learned,
    NotFound,
    Polled,
    PollEnded,
    Rang,
    Rejoin,
    Returning,
    Stale,
    Subscribed,
    Unanswered,
)
from rota.client.group.states import TRANSITIONS, MemberState
from rota.client.group.subscription import Snapshot, Topics, topics_of
from rota.client.network.metadata import Metadata
from rota.client.types import GroupMetadata, TopicPartition
from rota.protocol.messages.join_group import JoinGroupResponse

S = MemberState
NO_GENERATION: Final = -1
LANE = "group"  # a connection beside that of commits: a coordinator holds a JoinGroup back, and answers in order
ENDED: Final = (S.LEAVING, S.CLOSED)
# being part of a generation with nothing of it under way: what a heartbeat or a change of topics may interrupt
MEMBER_STATES: Final = (S.ASSIGNING, S.STABLE, S.REDISCOVERING)
TIMERS: Final = ("heartbeat", "session", "poll", "hook", "retry")


class Membership:
    """The machine. The shell (member.py) feeds it events and performs its effects in their order."""

    def __init__(self, config: ConsumerConfig, assignors: Sequence[Assignor]) -> None:
        self.config = config
        self.assignors = {assignor.name: assignor for assignor in assignors}
        self.protocol = rebalance_protocol(assignors)
        self.state = S.DOWN
        self.now_ms = 0
        self.out: list[Effect] = []
        # what the coordinator knows us by
        self.member_id = ""
        self.generation = NO_GENERATION
        self.assignor_name = ""  # of this generation
        # what we read
        self.wish: Topics | None = None
        self.metadata = Metadata()
        self.granted: frozenset[str] = frozenset()  # topics that a leader gave us before our metadata knew them
        self.owned: frozenset[TopicPartition] = frozenset()
        self.joined_topics: frozenset[str] | None = None  # as the last JoinGroup told them
        self.group_topics: frozenset[str] = frozenset()  # of all members, at the leader
        self.watched: Snapshot | None = None  # at the leader: what it assigned by
        self.wanted: frozenset[str] | None = frozenset()
        self._under_way()

    def _under_way(self) -> None:
        """What is going on: nothing yet."""
        self.polling = False
        self.rejoin: str | None = None  # why to join (again) with the next poll
        self.reason = ""  # of the next JoinGroup
        self.committed = False  # before_rejoin has run for this rejoin
        self.coordinator: int | None = None
        self.finding = False
        self.exchange: int | None = None  # a JoinGroup or SyncGroup
        self.beat: int | None = None  # a Heartbeat
        self.learning: int | None = None
        self.learned = False  # a pattern was matched against fresh metadata for the next JoinGroup
        self.elected: JoinGroupResponse | None = None  # we lead and wait for metadata
        self.pending: assigning.Pending | None = None
        self.hook: tuple[int, Hook] | None = None
        self.after_hook: KafkaError | None = None  # to be raised when the hook that runs is done
        self.pausing = False  # the retry timer is armed: neither find nor join before
        self.attempts = 0  # since the last success
        self.fenced: KafkaError | None = None
        # closing
        self.closing: leaving.Closing | None = None
        self._armed: set[str] = set()
        self._tickets = 0

    # ---- what is seen from outside

    @property
    def due(self) -> bool:
        """Whether `poll` has something to do or to wait for. A cooperative member that holds partitions reads on
        while it joins (KIP-429)."""
        match self.state:
            case S.LEAVING | S.CLOSED:
                return False
            case S.DOWN:
                return self.wish is not None or self.hook is not None
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
        if self.wish is None:
            return frozenset()
        found = topics_of(self.wish, self.metadata, exclude_internal=self.config.exclude_internal_topics)
        return found | self.granted

    @property
    def is_cooperative(self) -> bool:
        return self.protocol is RebalanceProtocol.COOPERATIVE

    @property
    def is_static(self) -> bool:
        return self.config.group_instance_id is not None

    # ---- step

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """What to do about one event at that time (ms, of any clock that does not go back)."""
        if self.state is S.CLOSED:
            return []
        was_due, self.now_ms, self.out = self.due, now_ms, []
        self._decide(event)
        self._advance()
        if self.due and not was_due and not self.polling:
            self.out.append(Wake())
        return self.out

    def _decide(self, event: Event) -> None:
        match event:
            case Answered():
                answers.answered(self, event.ticket, event.response)
            case Unanswered():
                answers.unanswered(self, event.ticket, event.error)
            case Rang():
                self._rang(event.key)
            case Polled() | PollEnded() | Returning():
                self._poll(event)
            case HookDone():
                self._hook_done(event)
            case Subscribed() | Known() | Learned():
                watching.told(self, event)
            case Found():
                beating.found(self, event.node)
            case NotFound():
                beating.not_found(self, event.error)
            case Stale():
                beating.stale(self, event.code, event.generation)
            case Rejoin():
                if self.state in MEMBER_STATES and self.rejoin is None:
                    self.ask_to_rejoin(event.reason)
            case Close():
                leaving.close(self, event.reason)
            case Hurry():
                leaving.hurry(self)
            case _:
                assert_never(event)

    def _advance(self) -> None:
        """Begin what is due and possible; one thing at a time."""
        if self.state in ENDED:
            leaving.proceed(self)
            return
        if self.polling and self.hook is None and self.state is S.ASSIGNING:
            assigning.proceed(self)
        if self.hook is None and (self.polling or self.state is S.REVOKING):
            joining.begin(self)
        if self.state in (S.DISCOVERING, S.JOINING):
            joining.proceed(self)
        if self.generation != NO_GENERATION:
            self.find()

    def _poll(self, event: Polled | PollEnded | Returning) -> None:
        match event:
            case Polled():
                self.disarm("poll")
                if self.fenced is not None:
                    self.fail(self.fenced)
                else:
                    self.polling = True
            case PollEnded():
                self.polling = False
            case Returning():
                self.polling = False
                if self.state not in ENDED:
                    self.arm("poll", self.config.max_poll_interval_ms)

    def _rang(self, key: str) -> None:
        self._armed.discard(key)
        match key:
            case "heartbeat":
                beating.beat(self)
            case "session":
                beating.session_expired(self)
            case "poll" | "hook":
                leaving.poll_expired(self)
            case "retry":
                self.pausing = False

    def _hook_done(self, event: HookDone) -> None:
        if self.hook is None or event.ticket != self.hook[0]:
            return
        (_, hook), self.hook = self.hook, None
        self.disarm("hook")
        error, self.after_hook = event.error or self.after_hook, None
        assigning.done(self, hook)
        if error is not None:
            self.fail(error)

    # ---- verbs of the branches

    def move(self, state: MemberState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state.name} -> {state.name}"
        self.state = state

    def note(self, level: str, event: str, **fields: object) -> None:
        known = {"group": self.config.group_id, "member": self.member_id, "generation": self.generation}
        self.out.append(Note(level, event, known | fields))

    def ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def ask(self, request: Any, timeout_ms: int, *, lane: str = LANE) -> int:
        assert self.coordinator is not None
        self.out.append(Ask(ticket := self.ticket(), self.coordinator, request, timeout_ms, lane))
        return ticket

    def run(self, hook: Hook) -> None:
        assert self.hook is None
        self.hook = (self.ticket(), hook)
        self.out.append(Run(*self.hook))
        if self.closing is None:
            self.arm("hook", self.config.max_poll_interval_ms)  # a callback is the user's time, too

    def arm(self, key: str, in_ms: int) -> None:
        self._armed.add(key)
        self.out.append(Arm(key, self.now_ms + in_ms))

    def arm_session(self) -> None:
        """The coordinator keeps us for so long from now on, as far as we know."""
        if self.generation != NO_GENERATION:
            self.arm("session", self.config.session_timeout_ms)

    def disarm(self, *keys: str) -> None:
        for key in keys:
            if key in self._armed:
                self._armed.discard(key)
                self.out.append(Disarm(key))

    def drop_exchange(self) -> None:
        if self.exchange is not None:
            self.out.append(Drop(self.exchange))
        self.exchange = self.elected = None

    def drop_beat(self) -> None:
        if self.beat is not None:
            self.out.append(Drop(self.beat))
        self.beat = None

    def pause(self) -> None:
        """Neither find nor join for a while, growing with each failure in a row."""
        grown = self.config.retry_backoff_ms * 2 ** min(self.attempts, 20)
        self.attempts += 1
        self.pausing = True
        self.arm("retry", min(grown, self.config.retry_backoff_max_ms))

    def find(self) -> None:
        if self.coordinator is None and not self.finding and not self.pausing:
            self.finding = True
            self.out.append(Find())

    def learn(self) -> None:
        self.learning = self.ticket()
        self.out.append(Learn(self.learning))

    def want(self, others: Iterable[str] = ()) -> None:
        """Keep informed of our topics, and at the leader of the others' too."""
        wanted = self.wish | frozenset(others) if isinstance(self.wish, frozenset) else None
        if wanted != self.wanted:
            self.wanted = wanted
            self.out.append(Want(wanted))

    def fail(self, error: BaseException) -> None:
        """`poll` raises it; nothing else begins before the next one."""
        self.polling = False
        self.out.append(Fail(error))

    def ask_to_rejoin(self, reason: str, why: str = "") -> None:
        """With the next poll; `reason` is for the coordinator, `why` for our log."""
        self.rejoin = self.reason = reason
        self.note("info", notes.REQUEST_JOINING, reason=why or reason)

    def out_of_group(self, reason: str, *, keep_id: bool) -> None:
        """No longer part of a generation. What is still held is lost with the next poll, which joins again."""
        self.note("info", notes.RESETTING, reason=reason, member_id_kept=keep_id)
        self.drop_exchange()
        self.drop_beat()
        self.disarm("heartbeat", "session")
        self.generation, self.assignor_name, self.pending, self.watched = NO_GENERATION, "", None, None
        self.committed = False
        if not keep_id:
            self.member_id = ""
        if self.state not in ENDED:
            if self.state is not S.DOWN:
                self.move(S.DOWN)
            self.ask_to_rejoin(reason)

    def give_up(self, error: KafkaError, reason: str) -> None:
        """Membership is impossible as things are: `poll` raises why, the one after it tries again."""
        self.out_of_group(reason, keep_id=True)
        self.fail(error)

    def end(self) -> None:
        """Nothing is under way any more."""
        self.drop_exchange()
        self.drop_beat()
        self.disarm(*TIMERS)
        self.move(S.CLOSED)
