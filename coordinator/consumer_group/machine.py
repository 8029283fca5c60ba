"""A group id as the runtime hosts it: its committed offsets, and its members of either protocol.

The offsets are those of the classic machine, `coordinator/group`. The members are what differs: while `consumer`
is None the group is a classic one, or has no members at all; else it is a group of the consumer protocol, and the state
of the classic machine is Empty.

Laws
    G1  `replay` alone writes the durable state, in normal work as on loading.
    G3  A request of the other protocol changes nothing and gets its code.
    CG11 A group is of one type; an Empty group of one type becomes one of the other when a member of that joins.
"""

from __future__ import annotations

from typing import Any, Final

from rota.coordinator.consumer_group import classic_requests, leave, notes, offsets, regexes
from rota.coordinator.consumer_group.description import ConsumerDescription, describe
from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply, refusal
from rota.coordinator.consumer_group.heartbeat import heartbeat
from rota.coordinator.consumer_group.records import ConsumerRecord
from rota.coordinator.consumer_group.settings import Environment
from rota.coordinator.consumer_group.state import ConsumerGroup, ConsumerGroupState
from rota.coordinator.consumer_group.steps import refuse
from rota.coordinator.group import expiry
from rota.coordinator.group import notes as group_notes
from rota.coordinator.group.commit import drop_unless_subscribed
from rota.coordinator.group.effects import (
    Append,
    AppendAndReply,
    AppendInTransaction,
    Effect,
    GroupRecord,
    OffsetRecord,
    OffsetsDropped,
    Reply,
    Step,
)
from rota.coordinator.group.events import (
    Commit,
    DeleteGroup,
    DropOffsets,
    ExpireOffsets,
    Heartbeat,
    InstanceId,
    Join,
    Leave,
    MemberId,
    Sync,
    TimerFired,
    TransactionalCommit,
)
from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import GroupConfig, Summary
from rota.coordinator.group.transitions import GroupState
from rota.protocol.consumer_group_records import EpochKey
from rota.protocol.errors import ErrorCode

CONSUMER: Final = "consumer"  # the type of the group, and its protocol type


class HostedGroup(Group):
    """One group id. The runtime makes one per id; `environment` is that of its consumer group."""

    __slots__ = ("consumer", "environment")

    def __init__(self, group_id: str, config: GroupConfig, environment: Environment | None = None) -> None:
        super().__init__(group_id, config)
        self.environment = environment or Environment()
        self.consumer: ConsumerGroup | None = None

    # ---- events

    def step(self, event: Any, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """Decide on one event, as the classic machine does."""
        group = self.consumer
        if group is None and type(event) is not ConsumerHeartbeat:
            return super().step(event, now_ms, wall_ms)
        step = Step(now_ms, now_ms if wall_ms is None else wall_ms)
        if type(event) is ConsumerHeartbeat:
            self._consumer_heartbeat(event, step)
        elif group is not None and not self._decide_as_consumer(group, event, step):
            step.effects += super().step(event, now_ms, wall_ms)
        return step.effects

    def heartbeat(self, member_id: MemberId, instance_id: InstanceId | None, generation: int, now_ms: int) -> ErrorCode:
        """Decide on a Heartbeat of the classic protocol; members of the consumer protocol have their own."""
        if self.consumer is not None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return super().heartbeat(member_id, instance_id, generation, now_ms)

    def _consumer_heartbeat(self, event: ConsumerHeartbeat, step: Step) -> None:
        group = self.consumer
        if group is None:
            self._join_as_consumer(event, step)
        elif event.member_epoch < 0:
            leave.leave(group, event, step)
        else:
            heartbeat(group, event, step)

    def _join_as_consumer(self, event: ConsumerHeartbeat, step: Step) -> None:
        """CG11. The first member of the consumer protocol; an Empty classic group ends before its first record."""
        refused = self._refuse_consumer(event)
        if refused is not None:
            refuse(step, event.token, refused)
            return
        group, first = ConsumerGroup(self.group_id, self.environment), Step(step.now_ms, step.wall_ms)
        heartbeat(group, event, first)
        if group.members:
            if not self.is_vacant:
                self._end_classic(step)
            self.consumer = group
        step.effects += first.effects

    def _refuse_consumer(self, event: ConsumerHeartbeat) -> HeartbeatReply | None:
        if event.member_epoch == 0 and self.state is GroupState.EMPTY:
            return None
        if self.is_vacant or self.state is GroupState.DEAD:
            subject = "Group" if event.member_epoch < 0 else "Consumer group"
            text = f"{subject} {self.group_id} not found."
        elif event.member_epoch != 0:
            text = f"Group {self.group_id} is not a consumer group."
        else:
            text = f"Cannot upgrade classic group {self.group_id} to consumer group because online upgrade is disabled."
        return refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)

    def _end_classic(self, step: Step) -> None:
        expiry.forget_pending(self, step)
        record = GroupRecord(self.group_id, None)
        super().replay(record)
        step.effects.append(Append(record))

    def _decide_as_consumer(self, group: ConsumerGroup, event: Any, step: Step) -> bool:
        """Decide on an event of a group of the consumer protocol; return False for one that is the same in both."""
        match event:
            case Commit():
                self._commit(group, event, step)
            case TransactionalCommit():
                self._commit_in_transaction(group, event, step)
            case TimerFired():
                self._timer_fired_as_consumer(group, event.key, step)
            case Join() if group.state is not ConsumerGroupState.EMPTY:
                classic_requests.join(event, step)
            case Join():
                self._end_consumer(step)
                return False
            case Sync():
                classic_requests.sync(event, step)
            case Heartbeat():
                step.refuse(event.token, ErrorCode.UNKNOWN_MEMBER_ID)
            case Leave():
                classic_requests.leave(group, event, step)
            case DropOffsets():
                answers = drop_unless_subscribed(self, event.partitions, group.is_subscribed_to, step)
                step.reply(event.token, OffsetsDropped(ErrorCode.NONE, answers))
            case DeleteGroup():
                self._delete(group, event, step)
            case ExpireOffsets():
                self._expire(group, event, step)
            case _:
                return False
        return True

    def _timer_fired_as_consumer(self, group: ConsumerGroup, key: str, step: Step) -> None:
        if key == regexes.RESOLVE:
            regexes.resolve(group, step)
        else:
            leave.timer_fired(group, key, step)

    # ---- offsets

    def _commit(self, group: ConsumerGroup, event: Commit, step: Step) -> None:
        error = offsets.check_commit(group, event)
        if error is not ErrorCode.NONE:
            step.effects.append(Reply(event.token, error, False))
            return
        self.replay_offsets(event.records)
        step.effects.append(AppendAndReply(event.records, event.token, ErrorCode.NONE))

    def _commit_in_transaction(self, group: ConsumerGroup, event: TransactionalCommit, step: Step) -> None:
        error = offsets.check_transactional_commit(group, event)
        if error is not ErrorCode.NONE:
            step.refuse(event.token, error)
            return
        self.replay_in_transaction(event.producer_id, event.records)
        written = AppendInTransaction(event.records, event.producer_id, event.producer_epoch, event.token, error)
        step.effects.append(written)

    def _delete(self, group: ConsumerGroup, event: DeleteGroup, step: Step) -> None:
        if group.state is not ConsumerGroupState.EMPTY:
            step.refuse(event.token, ErrorCode.NON_EMPTY_GROUP)
            return
        self._drop(list(dict.fromkeys((*self.offsets, *(self.pending or ())))), step)
        self._end_consumer(step)
        step.reply(event.token, ErrorCode.NONE)

    def _expire(self, group: ConsumerGroup, event: ExpireOffsets, step: Step) -> None:
        stable = [(key, value) for key, value in self.offsets.items() if not self.is_unstable(*key)]
        expired = offsets.expired(group, stable, event.retention_ms, step.wall_ms)
        self._drop(expired, step)
        if expired:
            step.note(group_notes.OFFSETS_EXPIRED, group.fields(offsets=len(expired)))
        if group.state is ConsumerGroupState.EMPTY and not self.offsets and not self.pending:
            self._end_consumer(step)

    def _drop(self, keys: list[tuple[str, int]], step: Step) -> None:
        for topic, partition in keys:
            self.drop_offset(topic, partition, step)

    def _end_consumer(self, step: Step) -> None:
        """Write the tombstones of the consumer group; the id may be used by a group of either type from now on."""
        assert self.consumer is not None
        fields = self.consumer.fields(offsets=len(self.offsets))
        offsets.remove(self.consumer, step)
        self.consumer, self.had_offsets = None, False
        step.note(group_notes.DELETED, fields)

    # ---- durable state

    def replay(self, record: GroupRecord | OffsetRecord | ConsumerRecord) -> None:
        """Take one record in. A value of None removes its key."""
        if type(record) is not ConsumerRecord:
            super().replay(record)  # type: ignore[arg-type]
            return
        if self.consumer is None:
            if record.value is None:
                return
            self.consumer = ConsumerGroup(self.group_id, self.environment)
        self.consumer.replay(record)
        if record.value is None and type(record.key) is EpochKey:
            self.consumer = None

    def loaded(self, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """Rebuild the soft state from the durable one; once, after the replay and before the first step."""
        if self.consumer is None:
            return super().loaded(now_ms, wall_ms)
        step = Step(now_ms, now_ms if wall_ms is None else wall_ms)
        leave.restart_timers(self.consumer, step)
        notes.loaded(self.consumer, step)
        return step.effects

    # ---- queries

    @property
    def is_vacant(self) -> bool:
        """Return True when there is nothing to remember: the runtime may drop the object."""
        return self.consumer is None and super().is_vacant

    @property
    def summary(self) -> Summary:
        """Return what lists and metrics show of the group."""
        group = self.consumer
        if group is None:
            return super().summary
        return Summary(CONSUMER, group.state.value, CONSUMER, len(group.members), group.epoch)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return whether OffsetFetch may be answered; members of the classic protocol are not checked."""
        return ErrorCode.NONE if self.consumer is None else offsets.check_fetch(self.consumer, member_id, member_epoch)

    def describe_consumer(self) -> ConsumerDescription | None:
        """Return the group as ConsumerGroupDescribe shows it; None for a classic group."""
        return None if self.consumer is None else describe(self.consumer)
