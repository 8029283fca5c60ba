"""The state of one consumer group (KIP-848): epochs, members, target assignment; every decision reads and changes it.

Laws
    G1  `replay` alone writes the durable state, in normal work as on loading.
    CG1 A partition has one owner: `owners` is derived from the members' current assignments.
    G5  Replaying the log, or the log after compaction, gives the same state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from enum import Enum
from typing import Any, Final

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.member import LEFT_EPOCH, Member, Partitions
from rota.coordinator.consumer_group.progress import Progress
from rota.coordinator.consumer_group.records import ConsumerRecord
from rota.coordinator.consumer_group.resolution import Resolution
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, Environment
from rota.coordinator.consumer_group.topics import NO_HASH, TopicDirectory
from rota.coordinator.group.refusals import Refusals
from rota.protocol import consumer_group_records as wire
from rota.protocol.dataclass import dataclass

FIRST_EPOCH: Final = 1  # of a group without a record of its epoch
NO_EPOCH: Final = -1
NO_VERSION: Final = -1
NO_TARGET: Final[Partitions] = {}


class ConsumerGroupState(Enum):
    """The value is the name on the wire. The state follows from epochs and members; nothing sets it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # there is no target assignment of the group epoch yet
    RECONCILING = "Reconciling"  # members are on their way to the target assignment
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that matched, with the version of the metadata then and the time, ms since the epoch."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    wall_ms: int = 0


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroup:
    """What one group of the consumer protocol knows. Committed offsets belong to the group id (`machine`)."""

    group_id: str
    environment: Environment = field(default_factory=Environment)
    # durable: written by `replay` only
    epoch: int = FIRST_EPOCH
    metadata_hash: int = NO_HASH
    target_epoch: int = FIRST_EPOCH
    target_ms: int = 0  # when the target was computed, ms since the epoch; 0: not known
    members: dict[str, Member] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    has_partition_metadata: bool = False  # a record of Kafka 4.0, which is removed
    # derived from that
    owners: dict[tuple[bytes, int], str] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)  # member id by instance id
    names: Counter[str] = field(default_factory=Counter)  # members by topic name
    expressions: Counter[str] = field(default_factory=Counter)  # members by regular expression
    assignors: Counter[str] = field(default_factory=Counter)
    classic_protocols: Counter[str] = field(default_factory=Counter)  # members of the classic protocol by assignor
    classic_count: int = 0  # members of the classic protocol
    # soft: lost in a crash
    topics_version: int = NO_VERSION  # of the topics that `metadata_hash` was compared with
    deadlines: dict[str, int] = field(default_factory=dict)  # ends of sessions by member id, in elapsed time
    armed: dict[str, int] = field(default_factory=dict)  # when their timers fire
    revoking: dict[str, int] = field(default_factory=dict)  # epochs of members with a rebalance timer
    is_target_checked: bool = True  # False after loading: the log may end within a step
    assigning_ms: int | None = None  # since when members wait for a new target, in elapsed time
    joining: set[str] = field(default_factory=set)  # ids of classic members that have to send JoinGroup
    syncing: set[str] = field(default_factory=set)  # ids of classic members that have to send SyncGroup
    resolved_version: int = NO_VERSION  # `created_version` of the topics when the expressions were resolved
    can_describe: Callable[[str], bool] | None = None  # of the client for which expressions are about to be resolved
    resolution: Resolution | None = None  # that has begun
    # for the timeline
    progress: Progress = field(default_factory=Progress)
    departed: dict[str, Partitions] = field(default_factory=dict)  # targets of members removed since the last target
    refusals: Refusals = field(default_factory=Refusals)

    # ---- durable state

    def replay(self, record: ConsumerRecord) -> None:
        """Take one record in. A value of None removes its key."""
        key, value = record.key, record.value
        match key:
            case wire.EpochKey():
                self.epoch = FIRST_EPOCH if value is None else value.epoch
                self.metadata_hash = NO_HASH if value is None else value.metadata_hash
            case wire.MemberKey():
                self._replay_member(key.member_id, value)
            case wire.TargetEpochKey():
                self.target_epoch = NO_EPOCH if value is None else value.assignment_epoch
                self.target_ms = 0 if value is None else value.assignment_timestamp
            case wire.TargetMemberKey():
                self.targets.pop(key.member_id, None)
                if value is not None:
                    self.targets[key.member_id] = records.read_target(value)
            case wire.CurrentAssignmentKey():
                self._replay_current(key.member_id, value)
            case wire.RegularExpressionKey():
                self._replay_regex(key.regular_expression, value)
            case wire.PartitionMetadataKey():
                self.has_partition_metadata = value is not None

    def _replay_member(self, member_id: str, value: wire.MemberValue | None) -> None:
        if value is not None:
            self._put(records.with_metadata(self.members.get(member_id) or Member(member_id=member_id), value))
        elif member_id in self.members:
            self._put(None, member_id)

    def _replay_current(self, member_id: str, value: wire.CurrentAssignmentValue | None) -> None:
        member = self.members.get(member_id)
        if value is not None:
            self._put(records.with_current(member or Member(member_id=member_id), value))
        elif member is not None:
            self._put(replace(member, epoch=LEFT_EPOCH, previous_epoch=LEFT_EPOCH, assigned={}, pending={}))

    def _replay_regex(self, expression: str, value: wire.RegularExpressionValue | None) -> None:
        self.regexes.pop(expression, None)
        if value is not None:
            self.regexes[expression] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)

    def _put(self, member: Member | None, member_id: str = "") -> None:
        """Replace a member, and what is derived from it; None removes it."""
        before = self.members.get(member_id if member is None else member.member_id)
        if before is not None:
            self._count(before, -1)
            for key in owned_by(before):
                if self.owners.get(key) == before.member_id:
                    del self.owners[key]
            if before.instance_id is not None and self.instances.get(before.instance_id) == before.member_id:
                del self.instances[before.instance_id]
        if member is None:
            del self.members[member_id]
            return
        self.members[member.member_id] = member
        self._count(member, 1)
        self.owners.update(dict.fromkeys(owned_by(member), member.member_id))
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id

    def _count(self, member: Member, number: int) -> None:
        self.classic_count += number * (member.classic is not None)
        for counter, keys in (
            (self.names, member.topic_names),
            (self.expressions, (member.regex,) if member.regex else ()),
            (self.assignors, (member.assignor,) if member.assignor else ()),
            (self.classic_protocols, frozenset(member.classic.names) if member.classic else ()),
        ):
            for key in keys:
                counter[key] += number
                if not counter[key]:
                    del counter[key]

    # ---- queries

    @property
    def topics(self) -> TopicDirectory:
        return self.environment.topics

    @property
    def settings(self) -> ConsumerGroupSettings:
        return self.environment.settings(self.group_id)

    @property
    def state(self) -> ConsumerGroupState:
        """Return the state, which follows from epochs and members."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that members subscribe to, by name or by a resolved regular expression."""
        return frozenset(self.names).union(*(self.regexes[each].topics for each in self._used_regexes()))

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to that topic."""
        return topic in self.names or any(topic in self.regexes[each].topics for each in self._used_regexes())

    def topics_of(self, member: Member) -> frozenset[str]:
        """Return the topics that this member subscribes to."""
        resolved = self.regexes.get(member.regex)
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    @property
    def is_homogeneous(self) -> bool:
        """Return whether all members subscribe to the same names, or all to one regular expression and no names."""
        count = len(self.members)
        if not self.expressions:
            return all(number == count for number in self.names.values())
        return not self.names and set(self.expressions.values()) == {count}

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members name; None when no member names one."""
        return max(self.assignors.items(), key=lambda item: item[1])[0] if self.assignors else None

    def by_instance(self, instance_id: str) -> Member | None:
        """Return the static member of that instance."""
        return self.members.get(self.instances.get(instance_id, ""))

    def has_classic_protocol(self, names: Iterable[str]) -> bool:
        """Return whether all members of the classic protocol support one of these assignors."""
        return any(self.classic_protocols[name] == self.classic_count for name in names)

    def is_waiting_for_partitions(self, member: Member) -> bool:
        """Return whether another member still owns a partition that this one is to get."""
        return any(
            (topic_id, index) in self.owners and index not in member.assigned.get(topic_id, ())
            for topic_id, indexes in self.targets.get(member.member_id, NO_TARGET).items()
            for index in indexes
        )

    def _used_regexes(self) -> Iterator[str]:
        return (expression for expression in self.regexes if expression in self.expressions)

    def fields(self, **more: Any) -> dict[str, Any]:
        """Return the fields of a note."""
        return {"group": self.group_id, "state": self.state.value, "generation": self.epoch, **more}


def owned_by(member: Member) -> Iterator[tuple[bytes, int]]:
    """Iterate over the partitions that the member owns or has still to revoke."""
    for owned in (member.assigned, member.pending):
        for topic_id, indexes in owned.items():
            for index in indexes:
                yield topic_id, index
