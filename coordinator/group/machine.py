"""One classic consumer group as a state machine: `step` decides, `replay` remembers. No clock, no socket, no logging.

Laws
    G1  `replay` alone writes the durable state, in normal work as on loading; `replay_offsets` replays one commit.
    G2  Generations only increase; a member gets a generation only after it is durable.
    G4  Every token that comes in with an event goes out in exactly one Reply, now or in a later step.
    G5  Replaying the log, or the log after compaction, gives the live durable state.
    A generation that has assignments is loaded as Stable, each member with a full session ahead. A generation that
    began but was never assigned is loaded as PreparingRebalance: its members get REBALANCE_IN_PROGRESS, rejoin with
    their ids and instances, and get a higher generation (docs/adr/0003). Its empty assignments are never handed out.
"""

from __future__ import annotations

from typing import assert_never

from rota.coordinator.group import commit, expiry, heartbeat, join, leave, notes, rebalance, sync
from rota.coordinator.group.effects import Effect, GroupValue, Reply, Step
from rota.coordinator.group.events import (
    Commit,
    DeleteGroup,
    DropOffsets,
    Event,
    ExpireOffsets,
    Heartbeat,
    InstanceId,
    Join,
    Leave,
    MemberId,
    Sync,
    TimerFired,
    TopicsDeleted,
    TransactionalCommit,
)
from rota.coordinator.group.members import member_from
from rota.coordinator.group.state import ClassicGroup, GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger

__all__ = ["Group", "GroupConfig"]


class Group(ClassicGroup):
    """A classic group with its decisions. The runtime makes one per id and performs its effects in their order."""

    __slots__ = ()

    def step(self, event: Event, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """Decide on one event; the effects are to be performed in their order.

        Deadlines are in `now_ms`, elapsed time. What is stored, and retention, are in `wall_ms`, ms since the epoch;
        None: both clocks are one.
        """
        if type(event) is Heartbeat:
            code = heartbeat.heartbeat(self, event.member_id, event.instance_id, event.generation, now_ms)
            return [Reply(event.token, code, False)]
        wall_ms = now_ms if wall_ms is None else wall_ms
        if type(event) is Commit:
            return commit.commit(self, event, now_ms, wall_ms)
        step = Step(now_ms, wall_ms)
        self._decide(event, step)
        return step.effects

    def heartbeat(self, member_id: MemberId, instance_id: InstanceId | None, generation: int, now_ms: int) -> ErrorCode:
        """Decide on a Heartbeat without event and effects: its reply promises nothing durable and may leave at once."""
        return heartbeat.heartbeat(self, member_id, instance_id, generation, now_ms)

    def fenced_heartbeat(
        self, member_id: MemberId, instance_id: InstanceId | None, now_ms: int, wall_ms: int
    ) -> list[Effect]:
        """Return the effects of a Heartbeat that was refused because its instance has another member now: a note."""
        step = Step(now_ms, wall_ms)
        self.note_fencing(ErrorCode.FENCED_INSTANCE_ID, member_id, instance_id, "heartbeat", step)
        return step.effects

    def _decide(self, event: Event, step: Step) -> None:
        match event:
            case Join():
                join.join(self, event, step)
            case Sync():
                sync.sync(self, event, step)
            case Leave():
                leave.leave(self, event, step)
            case TimerFired():
                self._timer_fired(event.key, step)
            case TransactionalCommit():
                commit.commit_in_transaction(self, event, step)
            case DropOffsets():
                commit.drop(self, event, step)
            case DeleteGroup():
                expiry.delete(self, event, step)
            case ExpireOffsets():
                expiry.expire(self, event, step)
            case TopicsDeleted():
                expiry.topics_deleted(self, event, step)
            case Heartbeat() | Commit():  # answered in step
                raise AssertionError
            case _:
                assert_never(event)

    def _timer_fired(self, key: str, step: Step) -> None:
        if key == rebalance.JOIN:
            rebalance.join_timer_fired(self, step)
        elif key == rebalance.SYNC:
            rebalance.sync_timer_fired(self, step)
        else:
            heartbeat.timer_fired(self, key, step)

    # ---- loading

    def loaded(self, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """Rebuild the soft state from the durable one; once, after the replay and before the first step."""
        step = Step(now_ms, now_ms if wall_ms is None else wall_ms)
        if self.hard is not None:
            self._load(self.hard, step)
        return step.effects

    def _load(self, value: GroupValue, step: Step) -> None:
        self.protocol_type, self.protocol, self.state_ms = value.protocol_type, value.protocol, value.state_ms
        self.loaded_ms = step.now_ms
        if value.members:
            self._load_members(value, step)
        step.note(notes.LOADED, self.fields(generation=self.generation, members=len(self.members)))
        if self.state is GroupState.COMPLETING:
            reason = f"Freshly-loaded group has begun generation {self.generation} unassigned"
            rebalance.prepare(self, step, reason, trigger=Trigger.LOADED_UNASSIGNED)
        elif len(self.members) > self.config.group_size_max:
            size = f"size {len(self.members)}) is over capacity {self.config.group_size_max}"
            reason = f"Freshly-loaded group {self.group_id} ({size}"
            rebalance.prepare(self, step, reason, trigger=Trigger.LOADED_OVER_CAPACITY)

    def _load_members(self, value: GroupValue, step: Step) -> None:
        is_assigned = any(member.assignment for member in value.members)
        self.state = GroupState.STABLE if is_assigned else GroupState.COMPLETING
        for stored in value.members:
            member = member_from(stored, value.protocol)
            self.members.add(member)
            self.keep_alive(member, step)
        if is_assigned:
            self.assigned = {member.member_id: member.assignment for member in self.members}
        if value.leader in self.members.by_id:
            self.members.leader = value.leader
