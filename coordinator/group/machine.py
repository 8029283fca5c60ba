"""One classic consumer group: `step` decides, `replay` remembers. No clock, no socket, no loop, no logging.

Laws
    G1  `replay` alone writes `hard`, `generation` and `offsets`, in normal work as at start-up.
    G2  Generations only grow; what a member is told of one is durable before it is told.
    G4  Every token that comes in with an event goes out in exactly one Reply, now or in a later step.
    G5  Replaying the log, or the log after compaction, gives the live hard state.
    There is no undo: a shard whose append failed is thrown away and replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from rota.coordinator.group import commit, expiry, heartbeat, join, leave, load, notes, rebalance, session, sync
from rota.coordinator.group.config import GroupConfig
from rota.coordinator.group.describe import Description, describe
from rota.coordinator.group.effects import (
    Effect,
    GroupRecord,
    GroupValue,
    Joined,
    OffsetRecord,
    OffsetValue,
    Reply,
    Synced,
)
from rota.coordinator.group.events import (
    NOBODY,
    Commit,
    DropOffsets,
    Event,
    Expired,
    ExpireOffsets,
    Heartbeat,
    InstanceId,
    Join,
    Leave,
    MemberId,
    Remove,
    Sync,
    Token,
    TopicsGone,
)
from rota.coordinator.group.members import UNARMED, Member, Members
from rota.coordinator.group.states import TRANSITIONS, GroupState
from rota.coordinator.group.subscription import CONSUMER, topics_of
from rota.coordinator.group.turn import Turn
from rota.protocol.errors import ErrorCode

__all__ = ["Group", "GroupConfig"]


class Group:
    """A classic group. The shell makes one per id, feeds it events and performs its effects in their order."""

    __slots__ = (
        "_topics",
        "config",
        "generation",
        "group_id",
        "had_offsets",
        "hard",
        "initial",
        "members",
        "offsets",
        "protocol",
        "protocol_type",
        "state",
        "state_ms",
    )

    def __init__(self, group_id: str, config: GroupConfig) -> None:
        self.group_id = group_id
        self.config = config
        # hard: written by replay only
        self.hard: GroupValue | None = None
        self.generation = 0
        self.offsets: dict[tuple[str, int], OffsetValue] = {}
        # soft: a crash may take it
        self.had_offsets = False  # some were dropped; as in Kafka that alone does not end the group
        self.state = GroupState.EMPTY
        self.state_ms = -1  # when that state began, ms since the epoch
        self.protocol_type = ""
        self.protocol: str | None = None  # the assignor of the current generation
        self.members = Members()
        self.initial: rebalance.InitialDelay | None = None
        self._topics: tuple[GroupValue | None, frozenset[str] | None] = (None, None)

    # ---- decide

    def step(self, event: Event, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """Decide on one event; the effects are to be performed in their order.

        Deadlines are in `now_ms`, elapsed time. What is stored, and retention, are in `wall_ms`, ms since the epoch;
        None stands for a world in which both clocks are one.
        """
        if type(event) is Heartbeat:
            code = heartbeat.beat(self, event.member_id, event.instance_id, event.generation, now_ms)
            return [Reply(event.token, code, False)]
        turn = Turn(now_ms, now_ms if wall_ms is None else wall_ms)
        self._decide(event, turn)
        return turn.effects

    def heartbeat(self, member_id: MemberId, instance_id: InstanceId | None, generation: int, now_ms: int) -> ErrorCode:
        """The whole of a Heartbeat. Its code may leave at once: it promises nothing that a crash could take back."""
        return heartbeat.beat(self, member_id, instance_id, generation, now_ms)

    def commit(
        self,
        member_id: MemberId,
        instance_id: InstanceId | None,
        generation: int,
        records: Sequence[OffsetRecord],
        now_ms: int,
    ) -> ErrorCode:
        """The whole of an OffsetCommit but for its note: NONE may leave once the records are appended."""
        return commit.commit(self, member_id, instance_id, generation, records, now_ms)

    def loaded(self, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """After the log was replayed: the members as it knows them, each with a full session ahead."""
        turn = Turn(now_ms, now_ms if wall_ms is None else wall_ms)
        load.load(self, turn)
        return turn.effects

    def abandon(self, token: Token) -> None:
        """The peer of a parked request is gone. As in Kafka nothing happens: its member's timers will notice."""

    def _decide(self, event: Event, turn: Turn) -> None:
        match event:
            case Commit():
                commit.committed(self, event, turn)
            case Join():
                join.join(self, event, turn)
            case Sync():
                sync.sync(self, event, turn)
            case Leave():
                leave.leave(self, event, turn)
            case Expired():
                session.expired(self, event.key, turn)
            case DropOffsets():
                commit.drop(self, event, turn)
            case Remove():
                expiry.remove(self, event, turn)
            case ExpireOffsets():
                expiry.expire(self, event, turn)
            case TopicsGone():
                expiry.topics_gone(self, event, turn)
            case Heartbeat():  # answered in step
                raise AssertionError
            case _:
                assert_never(event)

    # ---- remember

    def replay(self, record: GroupRecord | OffsetRecord) -> None:
        """Take one record in. Each is the whole truth for its key; a value of None takes that key away."""
        if type(record) is OffsetRecord:
            if record.value is None:
                self.had_offsets |= self.offsets.pop((record.topic, record.partition), None) is not None
            else:
                self.offsets[record.topic, record.partition] = record.value
            return
        assert type(record) is GroupRecord
        self.hard = record.value
        self.had_offsets &= record.value is not None
        self.generation = 0 if record.value is None else record.value.generation

    def record(self, record: GroupRecord | OffsetRecord, turn: Turn) -> None:
        """A durable decision: remembered and appended."""
        self.replay(record)
        turn.append(record)

    # ---- soft state, for the files of this package

    def move(self, target: GroupState, wall_ms: int) -> None:
        assert target in TRANSITIONS[self.state], f"{self.state} -> {target}"
        self.state, self.state_ms = target, wall_ms

    def keep_alive(self, member: Member, turn: Turn) -> None:
        """Begin the member's session anew; its timer is touched only when it would go off too late."""
        self.expect(member, turn.now_ms + member.session_ms, turn)

    def expect(self, member: Member, deadline_ms: int, turn: Turn) -> None:
        member.deadline_ms = deadline_ms
        if member.armed_ms == UNARMED or member.armed_ms > deadline_ms:
            member.armed_ms = deadline_ms
            turn.arm(member.timer, deadline_ms)

    def forget(self, member_id: MemberId, turn: Turn) -> None:
        """Take a member out, its timer too. What it had parked must have been answered."""
        member = self.members.remove(member_id)
        if member is not None and member.armed_ms != UNARMED:
            turn.disarm(member.timer)

    def dismiss(self, member: Member, turn: Turn) -> None:
        """Take a member out and answer what it had parked: it may come again as a new one."""
        token = self.members.take_join(member)
        if token is not None:
            turn.refuse(token, Joined(member_id=NOBODY, error=ErrorCode.UNKNOWN_MEMBER_ID))
        if member.sync is not None:
            turn.refuse(member.sync, Synced(error=ErrorCode.UNKNOWN_MEMBER_ID))
            member.sync = None
        self.forget(member.member_id, turn)

    def note_fencing(
        self, error: ErrorCode, member_id: MemberId, instance_id: InstanceId | None, operation: str, turn: Turn
    ) -> None:
        if error is ErrorCode.FENCED_INSTANCE_ID and instance_id is not None:
            holder = self.members.by_instance.get(instance_id)
            fields = self.fields(member=member_id, instance=instance_id, holder=holder, operation=operation)
            turn.note(notes.FENCED, fields)

    def fields(self, **more: object) -> dict[str, object]:
        """The fields of a note."""
        return {"group": self.group_id, "state": self.state.value, **more}

    # ---- look

    @property
    def is_vacant(self) -> bool:
        """Nothing to remember: the shell may drop the object."""
        if self.state is GroupState.DEAD:
            return True
        is_known = self.hard is not None or self.offsets or self.had_offsets or self.members.pending
        return self.state is GroupState.EMPTY and not is_known

    @property
    def leader_or_none(self) -> MemberId:
        return self.members.leader or NOBODY

    @property
    def is_consumer(self) -> bool:
        return self.protocol_type == CONSUMER

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics of the current generation's subscriptions. None: not known, or not the consumer protocol."""
        if self._topics[0] is not self.hard:
            self._topics = (self.hard, topics_of(self.hard))
        return self._topics[1]

    def subscribes(self, topic: str) -> bool:
        """Does the group want that topic? A consumer group whose subscriptions are not known wants every one."""
        topics = self.subscribed_topics()
        return self.is_consumer if topics is None else topic in topics

    def describe(self) -> Description:
        return describe(self)
