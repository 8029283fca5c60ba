"""The state of one classic consumer group, as Kafka's ClassicGroup; every branch of the machine reads and changes it.

Laws
    G1  `replay` alone writes `hard`, `generation` and `offsets`, in normal work as on loading.
    G5  A record is the whole value of its key: replaying the log, or the log after compaction, gives the same state.
    The topics of a generation are read from its members' subscriptions, which are untrusted and of any version. Topics
    stand first in every version, so all are read as version 0; what cannot be read makes the whole answer "unknown".
    `transition_to` alone changes `state`, and asserts the table of transitions.py; but for a group that comes from
    another type or becomes one (`begin_stable`, `end_members`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from rota.coordinator.group import notes
from rota.coordinator.group.effects import GroupRecord, GroupValue, Joined, OffsetRecord, OffsetRecords, Step, Synced
from rota.coordinator.group.events import NO_MEMBER, InstanceId, MemberId
from rota.coordinator.group.members import CHAR_BYTES_MAX, UNARMED, Member, Members, utf8_bytes
from rota.coordinator.group.offsets import Offsets, PendingOffsets, each_offset
from rota.coordinator.group.refusals import Refusal, Refusals
from rota.coordinator.group.transitions import TRANSITIONS, GroupState
from rota.protocol.compiler import codec
from rota.protocol.consumer_protocol import PROTOCOL_TYPE as CONSUMER
from rota.protocol.consumer_protocol import Subscription
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember
from rota.protocol.records.offset_columns import store
from rota.protocol.wire import DecodeError

INT32_MAX = 2**31 - 1
CLASSIC = "classic"
VERSION_BYTES = 2  # of a subscription
_EMPTY, _DEAD = GroupState.EMPTY, GroupState.DEAD  # bound once: `is_vacant` is asked after every step
GROUP_RECORD_OVERHEAD_BYTES = 128  # of the batch, key and value that hold a group, beside its texts and members


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The broker's settings that a group obeys, with Kafka 4.3's defaults."""

    group_size_max: int = INT32_MAX  # group.max.size
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    session_min_ms: int = 6_000  # group.min.session.timeout.ms
    session_max_ms: int = 1_800_000  # group.max.session.timeout.ms
    offsets_retention_ms: int = 604_800_000  # offsets.retention.minutes
    record_bytes_max: int = 1_048_588  # message.max.bytes: what the offsets topic takes as one batch
    new_member_join_ms: int = 300_000  # how long a member that waits for its first generation is kept


@dataclass(slots=True)
class InitialDelay:
    """The initial delay of a group that was Empty: the running delay, and the time by which it may be extended."""

    delay_ms: int
    remaining_ms: int
    grew: bool = False  # a member joined since the delay began


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member as DescribeGroups shows it. As in Kafka its metadata is shown in Stable only."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class Description:
    """A group as DescribeGroups and ListGroups show it. As in Kafka the assignor is shown in Stable only."""

    state: GroupState
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


class Summary(NamedTuple):
    """A group as lists and metrics show it. `kind` is the type of ListGroups."""

    kind: str
    state: str
    protocol_type: str
    member_count: int
    generation: int


@dataclass(slots=True, eq=False, repr=False)
class ClassicGroup:
    """Everything that one group knows. `machine.Group` adds the decisions."""

    group_id: str
    config: GroupConfig
    # durable: written by `replay` only
    hard: GroupValue | None = None
    generation: int = 0
    offsets: Offsets = field(default_factory=Offsets)
    pending: PendingOffsets | None = None  # offsets of transactions; None before the first one
    # soft: lost in a crash, rebuilt by `Group.loaded`
    had_offsets: bool = False  # some were dropped; as in Kafka that alone does not end the group
    state: GroupState = GroupState.EMPTY
    state_ms: int = -1  # when that state began, ms since the epoch
    protocol_type: str = ""
    protocol: str | None = None  # the assignor of the current generation
    members: Members = field(default_factory=Members)
    initial: InitialDelay | None = None
    initial_delay_min_ms: int = 0  # the least initial delay, of the last member that was added
    loaded_ms: int | None = None  # when it was loaded; None for a group that began here
    # for the timeline
    phase_ms: int = 0  # when the join phase or the wait for the assignment began, in elapsed time
    assigned: Mapping[MemberId, bytes] | None = None  # the last assignment, as its leader sent it; None: not known
    refusals: Refusals = field(default_factory=Refusals)
    _topics: tuple[GroupValue | None, frozenset[str] | None] = (None, None)

    # ---- durable state

    def replay(self, record: GroupRecord | OffsetRecord | OffsetRecords) -> None:
        """Take one record in. A value of None removes its key."""
        if type(record) is OffsetRecords:
            self.replay_offsets((record,))
            return
        if type(record) is OffsetRecord:
            if record.value is None:
                self.offsets.pop((record.topic, record.partition), None)
                if self.pending:
                    self.pending.removed(record.topic, record.partition)
                return
            if self.pending:
                self.pending.written(record.topic, record.partition)
            self.offsets[record.topic, record.partition] = record.value
            return
        assert type(record) is GroupRecord
        self.hard = record.value
        self.generation = 0 if record.value is None else record.value.generation

    def replay_offsets(self, records: Iterable[OffsetRecord | OffsetRecords]) -> None:
        """`replay` each of these records."""
        for record in records:
            if type(record) is not OffsetRecords:
                self.replay(record)
                continue
            if self.pending:
                for partition in record.partitions:
                    self.pending.written(record.topic, partition)
            store(self.offsets.by_topic, record.topic, record.partitions, record.values)

    def replay_in_transaction(self, producer_id: int, records: Iterable[OffsetRecord | OffsetRecords]) -> None:
        """Take in offsets that count when the producer's transaction commits."""
        if self.pending is None:
            self.pending = PendingOffsets()
        self.pending.add(producer_id, each_offset(records))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Take in the marker of the producer's transaction."""
        if self.pending is not None:
            self.offsets.update(self.pending.end(producer_id, is_commit=is_commit))

    def is_unstable(self, topic: str, partition: int) -> bool:
        """Return whether a transaction may still change the offset of this partition."""
        return self.pending is not None and self.pending.is_pending(topic, partition)

    def record_group(self, value: GroupValue | None, step: Step) -> None:
        """Decide the group's next record: remember it and append it. None ends the group."""
        self.had_offsets &= value is not None
        self._record(GroupRecord(self.group_id, value), step)

    def drop_offset(self, topic: str, partition: int, step: Step) -> None:
        """Decide that an offset goes: forget it and append its tombstone."""
        self.had_offsets |= (topic, partition) in self.offsets or self.is_unstable(topic, partition)
        self._record(OffsetRecord(self.group_id, topic, partition, None), step)

    def _record(self, record: GroupRecord | OffsetRecord, step: Step) -> None:
        self.replay(record)
        step.append(record)

    def value(self, *, generation: int, assigned: bool) -> GroupValue:
        """Return the group as a record: of a generation that begins (nothing assigned), or with its assignments."""
        return GroupValue(
            protocol_type=self.protocol_type,
            generation=generation,
            protocol=self.protocol,
            leader=self.members.leader,
            state_ms=self.state_ms,
            members=tuple(member.as_value(self.protocol, assigned=assigned) for member in self.members),
        )

    def can_fit_in_record(self, members_bytes: int, joining: Member | None = None, protocol_type: str = "") -> bool:
        """Return whether a record with members of `members_bytes` bytes in all could be written (law CO3).

        The result holds for any leader among them and `joining`, and for any assignor.
        """
        leader_bytes, supporters = self.members.longest_id_bytes, self.members.supporters
        chars = len(self.group_id) + len(self.protocol_type) + len(protocol_type) + sum(map(len, supporters))
        at_most = members_bytes + leader_bytes + CHAR_BYTES_MAX * chars + GROUP_RECORD_OVERHEAD_BYTES
        if joining is None and at_most <= self.config.record_bytes_max:  # as nearly always: nothing has to be encoded
            return True
        names = [*supporters]
        if joining is not None:
            leader_bytes = max(leader_bytes, utf8_bytes(joining.member_id))
            names += [proto.name for proto in joining.protocols]
        type_bytes = max(utf8_bytes(self.protocol_type), utf8_bytes(protocol_type))
        texts_bytes = utf8_bytes(self.group_id) + type_bytes + leader_bytes + max(map(utf8_bytes, names), default=0)
        size = members_bytes + texts_bytes + GROUP_RECORD_OVERHEAD_BYTES
        return size <= self.config.record_bytes_max

    # ---- soft state

    def transition_to(self, target: GroupState, wall_ms: int) -> None:
        """Change the state. Raises AssertionError for a transition that is not in the table."""
        assert target in TRANSITIONS[self.state], f"{self.state} -> {target}"
        self.state, self.state_ms = target, wall_ms

    def end_members(self) -> None:
        """Be Empty, without members: they are those of a group of another type now."""
        self.members, self.initial, self.assigned = Members(), None, None
        self.state, self.protocol_type, self.protocol = GroupState.EMPTY, "", None

    def begin_stable(self, protocol_type: str, wall_ms: int) -> None:
        """Be Stable with the members that were set: those of a group of another type until now."""
        self.protocol_type, self.protocol = protocol_type, self.members.select_protocol()
        self.state, self.state_ms = GroupState.STABLE, wall_ms

    def keep_alive(self, member: Member, step: Step) -> None:
        """Restart the member's session; its timer is moved only if it would fire too late."""
        self.set_deadline(member, step.now_ms + member.session_ms, step)

    def set_deadline(self, member: Member, deadline_ms: int, step: Step) -> None:
        """Set the time when the member's session ends."""
        member.deadline_ms = deadline_ms
        if member.armed_ms == UNARMED or member.armed_ms > deadline_ms:
            member.armed_ms = deadline_ms
            step.arm(member.timer, deadline_ms)

    def remove_member(self, member_id: MemberId, step: Step) -> None:
        """Remove a member and its timer. Its waiting requests must have been answered."""
        member = self.members.remove(member_id)
        if member is not None and member.armed_ms != UNARMED:
            step.disarm(member.timer)

    def expel_member(self, member: Member, step: Step) -> None:
        """Remove a member and answer its waiting requests UNKNOWN_MEMBER_ID: it may join again as a new one."""
        token = self.members.take_join(member)
        if token is not None:
            step.refuse(token, Joined(member_id=NO_MEMBER, error=ErrorCode.UNKNOWN_MEMBER_ID))
        if member.sync is not None:
            step.refuse(member.sync, Synced(error=ErrorCode.UNKNOWN_MEMBER_ID))
            member.sync = None
        self.remove_member(member.member_id, step)

    def note_fencing(
        self, error: ErrorCode, member_id: MemberId, instance_id: InstanceId | None, operation: str, step: Step
    ) -> None:
        """Note that a request of a fenced instance was refused; nothing for other errors."""
        if error is ErrorCode.FENCED_INSTANCE_ID and instance_id is not None:
            member = EventMember(member_id=member_id, instance_id=instance_id)
            self.note_refusal(notes.FENCED, member, operation, error, step)

    def note_refusal(
        self, event: str, member: EventMember, operation: str, error: ErrorCode, step: Step, reason: str = ""
    ) -> None:
        """Note that a request was refused, when its count is to be noted."""
        refusal = self.refusals.add(event, member, operation, error)
        if refusal is not None:
            refusal.reason = reason
            self.write_refusal(refusal, step)

    def write_refusal(self, refusal: Refusal, step: Step) -> None:
        """Note a refusal with its count."""
        member, instance_id = refusal.member, refusal.member.instance_id
        fields = self.fields(member=member.member_id, operation=refusal.operation, count=refusal.count)
        if instance_id is not None:
            fields |= {"instance": instance_id, "holder": self.members.by_instance.get(InstanceId(instance_id))}
        if refusal.reason:
            fields["reason"] = refusal.reason
        fields["members"] = len(self.members)
        timeline = {"members": (member,), "error_code": int(refusal.error), "generation": self.generation}
        step.note(refusal.event, fields, **timeline)

    def fields(self, **more: object) -> dict[str, object]:
        """Return the fields of a note."""
        return {"group": self.group_id, "state": self.state.value, **more}

    # ---- queries

    @property
    def machine_id(self) -> str:
        return self.group_id

    @property
    def is_vacant(self) -> bool:
        """Return True when there is nothing to remember: the runtime may drop the object."""
        return self.has_nothing()

    def has_nothing(self) -> bool:
        """Return `is_vacant` of the classic group; a call takes half of the time of a property of `super()`."""
        if self.hard is not None or self.offsets.by_topic or self.had_offsets or self.members.pending or self.pending:
            return self.state is _DEAD
        return self.state is _EMPTY or self.state is _DEAD

    @property
    def summary(self) -> Summary:
        """Return what lists and metrics show of the group."""
        return Summary(CLASSIC, self.state.value, self.protocol_type, len(self.members), self.generation)

    @property
    def leader_or_none(self) -> MemberId:
        return self.members.leader or NO_MEMBER

    @property
    def is_consumer(self) -> bool:
        return self.protocol_type == CONSUMER

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics of the current generation. None: not known, or not the consumer protocol."""
        if self._topics[0] is not self.hard:
            self._topics = (self.hard, topics_of(self.hard))
        return self._topics[1]

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether members want that topic. A consumer group whose subscriptions are unknown wants every one."""
        topics = self.subscribed_topics()
        return self.is_consumer if topics is None else topic in topics

    def check_member(self, member_id: MemberId, instance_id: InstanceId | None) -> ErrorCode:
        """Return whether this id may speak for this instance (law G3), also when the group was deleted."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return self.members.check(member_id, instance_id)

    def describe(self) -> Description:
        """Return the group as clients may see it."""
        protocol = self.protocol if self.state is GroupState.STABLE else None
        members = tuple(
            DescribedMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(protocol) if protocol is not None else b"",
                member.assignment,
            )
            for member in self.members
        )
        return Description(self.state, self.protocol_type, protocol or "", members)


def topics_of(value: GroupValue | None) -> frozenset[str] | None:
    """None: another protocol type, or a subscription that cannot be read."""
    if value is None or value.protocol_type != CONSUMER:
        return None
    try:
        return frozenset(topic for member in value.members for topic in _topics(member.subscription))
    except DecodeError:
        return None


def _topics(subscription: bytes) -> tuple[str, ...]:
    if len(subscription) < VERSION_BYTES:
        raise DecodeError("no version before the subscription")
    return codec(Subscription, 0).decode(subscription, VERSION_BYTES)[0].topics
