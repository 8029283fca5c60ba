"""A group id as the runtime hosts it: its committed offsets, and its members of either protocol.

The offsets are those of the classic machine, `coordinator/group`. The members are what differs: while `consumer`
is None the group is a classic one, or has no members at all; else it is a group of the consumer protocol, and the state
of the classic machine is Empty.

Laws
    G1  `replay` alone writes the durable state, in normal work as on loading.
    G3  A request of the other protocol changes nothing and gets its code.
    CG11 A group is of one type; an Empty group of one type becomes one of the other when a member of that joins.
    CG18 A group with members changes its type as `migration` has it; wherever the log ends within the
        records of that, its members join again and get all partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rota.coordinator.consumer_group import (
    classic_requests,
    leave,
    migration,
    notes,
    offsets,
    refused_requests,
    regexes,
)
from rota.coordinator.consumer_group.description import ConsumerDescription, describe
from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply, refusal
from rota.coordinator.consumer_group.heartbeat import Admitted, Client, accept, check, extend_session, heartbeat
from rota.coordinator.consumer_group.records import ConsumerRecord
from rota.coordinator.consumer_group.settings import Environment
from rota.coordinator.consumer_group.state import ConsumerGroup, ConsumerGroupState
from rota.coordinator.consumer_group.steps import refuse
from rota.coordinator.consumer_group.target import update_target
from rota.coordinator.group import commit, expiry, rebalance
from rota.coordinator.group import notes as group_notes
from rota.coordinator.group.commit import drop_unless_subscribed
from rota.coordinator.group.effects import (
    Append,
    AppendAndReply,
    AppendInTransaction,
    Effect,
    GroupRecord,
    Joined,
    OffsetRecord,
    OffsetRecords,
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
from rota.coordinator.group.members import Members
from rota.coordinator.group.state import GroupConfig, Summary
from rota.coordinator.group.transitions import GroupState
from rota.protocol.consumer_group_records import EpochKey
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger

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

    def take_commit(
        self,
        member_id: MemberId,
        instance_id: InstanceId | None,
        generation: int,
        records: Sequence[OffsetRecord | OffsetRecords],
        now_ms: int,
    ) -> bool:
        """Decide on an OffsetCommit without event and effects; False, and nothing changed, if a step has to decide."""
        return self.consumer is None and commit.take(self, member_id, instance_id, generation, records, now_ms)

    def extend_session(self, member_id: str, epoch: int, client: Client, now_ms: int) -> HeartbeatReply | None:
        """Answer a heartbeat without changes, without event and effects; None when a step has to decide (CG19).

        The reply waits until the writes before it are committed, as a step's does.
        """
        group = self.consumer
        if group is None or not extend_session(group, member_id, epoch, client, now_ms):
            return None
        return HeartbeatReply(member_id=member_id, member_epoch=epoch, interval_ms=group.settings.heartbeat_interval_ms)

    def _consumer_heartbeat(self, event: ConsumerHeartbeat, step: Step) -> None:
        group = self.consumer
        if group is None:
            self._join_as_consumer(event, step)
        elif event.member_epoch < 0:
            leave.leave(group, event, step, self._remove)
        else:
            heartbeat(group, event, step)

    def _join_as_consumer(self, event: ConsumerHeartbeat, step: Step) -> None:
        """CG11, CG16. The first member of the consumer protocol: the classic group ends before its first record."""
        first = Step(step.now_ms, step.wall_ms)
        checked = self._consumer_group(event, first)
        if isinstance(checked, HeartbeatReply):
            self._note_refused(event, checked, step)
            refuse(step, event.token, checked)
            return
        group, admitted = checked
        if not self.is_vacant:
            self._end_classic(step)
        self.consumer = group
        step.effects += first.effects
        accept(group, event, admitted, step)

    def refused_heartbeat(
        self, event: ConsumerHeartbeat, refusal: HeartbeatReply, now_ms: int, wall_ms: int
    ) -> list[Effect]:
        """Return the effects of a heartbeat that was refused before it reached the group: a note."""
        step = Step(now_ms, wall_ms)
        if self.consumer is None:
            self._note_refused(event, refusal, step)
        else:
            refused_requests.refused_heartbeat(self.consumer, event, refusal, step)
        return step.effects

    def _note_refused(self, event: ConsumerHeartbeat, refusal: HeartbeatReply, step: Step) -> None:
        """Count a heartbeat that a classic group refuses; nothing is left behind by one to no group."""
        if not self.is_vacant:
            note, member = refused_requests.note_of(refusal.error), refused_requests.sender(event)
            reason = refusal.message or note
            self.note_refusal(note, member, refused_requests.HEARTBEAT, refusal.error, step, reason)

    def _consumer_group(self, event: ConsumerHeartbeat, first: Step) -> tuple[ConsumerGroup, Admitted] | HeartbeatReply:
        """Return the group that the member joins, with its records in `first`, or the refusal."""
        if event.member_epoch != 0 or self.state is GroupState.DEAD:
            is_unknown = self.is_vacant or self.state is GroupState.DEAD
            subject = "Group" if event.member_epoch < 0 else "Consumer group"
            unknown = f"{subject} {self.group_id} not found."
            text = unknown if is_unknown else f"Group {self.group_id} is not a consumer group."
            return refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)
        try:
            group = self._converted(first)
        except migration.CannotUpgrade as refused:
            return refusal(ErrorCode.GROUP_ID_NOT_FOUND, str(refused))
        checked = check(group, event)
        return checked if isinstance(checked, HeartbeatReply) else (group, checked)

    def _converted(self, first: Step) -> ConsumerGroup:
        """Return a new group, with the members of the classic one. Raises CannotUpgrade."""
        if self.state is GroupState.EMPTY:
            return ConsumerGroup(self.group_id, self.environment)
        migration.check_upgrade(self, self.environment.settings(self.group_id))
        return migration.upgrade(self, self.environment, first)

    def _end_classic(self, step: Step) -> None:
        """Forget the classic group; its members join again in the group of the consumer protocol."""
        expiry.forget_pending(self, step)
        for each in self.refusals.finish():
            self.write_refusal(each, step)
        if self.state is not GroupState.EMPTY:
            step.note(group_notes.UPGRADED, self.fields(generation=self.generation, members=len(self.members)))
            rebalance.release(self, step)
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
                self._classic_join(group, event, step)
            case Join():
                self._end_consumer(step)
                return False
            case Sync():
                classic_requests.sync(group, event, step)
            case Heartbeat():
                classic_requests.heartbeat(group, event, step)
            case Leave():
                classic_requests.leave(group, event, step, self._remove)
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
            leave.timer_fired(group, key, step, self._remove)

    # ---- members of the classic protocol in a group of the consumer protocol

    def _classic_join(self, group: ConsumerGroup, event: Join, step: Step) -> None:
        """Answer at once; a classic member that replaces the last one of the consumer protocol ends the group."""
        joining = classic_requests.check_join(group, event, self.config)
        if isinstance(joining, Joined):
            classic_requests.note_refused_join(group, event, joining, step)
            step.refuse(event.token, joining)
            return
        size_max, replaced = self.config.group_size_max, joining.replaces
        is_last = replaced is not None and migration.is_downgrade_due_when_replaced(group, replaced, size_max)
        generation = group.epoch
        member, has_changed = classic_requests.record_join(group, joining, step)
        is_stale = group.target_epoch < group.epoch
        if not is_last:
            update_target(group, step)
        if not (is_last and is_stale):
            member = classic_requests.advance(group, joining, member, step, has_changed=has_changed)
        reason = f"Downgrade group {self.group_id} from consumer to classic with stale assignment."
        removal = leave.Removal((), reason, Trigger.STATIC_MEMBER_REPLACED)
        if not (is_last and self._downgrade(group, removal, generation, step, has_to_rebalance=is_stale)):
            classic_requests.start_timers(group, member, step)
            notes.progressed(group, step)
        step.reply(event.token, classic_requests.joined(member))

    def _remove(self, removal: leave.Removal, step: Step) -> None:
        """Remove members; CG17 when only members of the classic protocol stay."""
        group = self.consumer
        assert group is not None
        if migration.is_downgrade_due(group, removal.members, self.config.group_size_max):
            reason = f"Downgrade group {self.group_id} from consumer to classic for member leaving."
            with_reason = leave.Removal(removal.members, reason, removal.trigger, removal.client_reason)
            if self._downgrade(group, with_reason, group.epoch, step, has_to_rebalance=True):
                return
        leave.remove_members(group, removal, step)

    def _downgrade(
        self, group: ConsumerGroup, removal: leave.Removal, generation: int, step: Step, *, has_to_rebalance: bool
    ) -> bool:
        """CG17. Return False, and change nothing, when the record of the classic group would be too large (CO3).

        `generation` is the group epoch before the request, as in Kafka. One that has to rebalance is recorded without
        its assignments, so that it rebalances after a crash, too (docs/adr/0003).
        """
        members = migration.downgraded_members(group, removal.members, has_to_rebalance=has_to_rebalance)
        assigned = {member.member_id: member.assignment for member in members}
        self.members = members
        size = members.record_bytes + sum(map(len, assigned.values()))
        if not self.can_fit_in_record(size, protocol_type=CONSUMER):
            self.members = Members()
            return False
        refused_requests.finish(group, step)
        offsets.remove(group, step)
        self.consumer, self.assigned = None, assigned
        self.begin_stable(CONSUMER, step.wall_ms)
        self.record_group(self.value(generation=generation, assigned=not has_to_rebalance), step)
        for member in members:
            self.keep_alive(member, step)
        step.note(group_notes.DOWNGRADED, self.fields(generation=generation, members=len(members)))
        if has_to_rebalance:
            named = tuple(member.as_event_member() for member in removal.members)
            reason, trigger = removal.reason, removal.trigger
            rebalance.prepare(self, step, reason, removal.client_reason, trigger=trigger, members=named)
        return True

    # ---- offsets

    def _commit(self, group: ConsumerGroup, event: Commit, step: Step) -> None:
        error = offsets.check_commit(group, event)
        if error is not ErrorCode.NONE:
            refused_requests.refused_commit(group, event, error, step)
            step.effects.append(Reply(event.token, error, False))
            return
        self.replay_offsets(event.records)
        step.effects.append(AppendAndReply(event.records, event.token, ErrorCode.NONE))

    def _commit_in_transaction(self, group: ConsumerGroup, event: TransactionalCommit, step: Step) -> None:
        error = offsets.check_transactional_commit(group, event)
        if error is not ErrorCode.NONE:
            refused_requests.refused_commit(group, event, error, step)
        if error is not ErrorCode.NONE or not event.records:  # nothing is written
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

    def replay(self, record: GroupRecord | OffsetRecord | OffsetRecords | ConsumerRecord) -> None:
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
        notes.progressed(self.consumer, step)
        return step.effects

    # ---- queries

    @property
    def is_vacant(self) -> bool:
        """Return True when there is nothing to remember: the runtime may drop the object."""
        return self.consumer is None and self.has_nothing()

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
