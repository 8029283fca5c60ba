"""Which members are on their way to the target assignment, and how long each one took to revoke. Soft state, pure.

Law
    TL12 The time of a revocation begins when the coordinator has taken partitions from the member, in the answer to
        its heartbeat, and ends with the heartbeat that says that it does not own them any more.
    TL15 A reconciliation begins when the first member lacks its target assignment, however old that target is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from rota.coordinator.consumer_group.member import Member
from rota.coordinator.group.moves import Moves
from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import EventMember


@dataclass(slots=True)
class NewTarget:
    """A target that was computed in this step and has no event yet: its assignor, what it moves, the wait for it."""

    assignor: str
    moves: Moves
    waited_ms: int  # since the group epoch before it ended, or since the group was loaded


@dataclass(slots=True)
class Progress:
    """The progress of a group towards its target assignment. Everything in it is bounded by the group's members."""

    target: NewTarget | None = None
    started_ms: int = 0  # when members began to lack their target assignment, in elapsed time
    lagging: set[str] = field(default_factory=set)  # ids of the members that do not have their target assignment
    revoking_since: dict[str, int] = field(default_factory=dict)  # by member id, in elapsed time
    revoked: dict[str, EventMember] = field(default_factory=dict)  # with `wait_ms`, by member id
    is_noted: bool = False  # the timeline has the begin of this reconciliation

    def begin(self, members: Iterable[Member], epoch: int, now_ms: int) -> None:
        """A target assignment was computed, or the group was loaded.

        What members took to revoke for the target before is kept, when they were not done with it.
        """
        self.lagging = {member.member_id for member in members if not member.is_reconciled_to(epoch)}
        self.started_ms, self.is_noted = now_ms, False

    def advance(self, before: Member, after: Member, epoch: int, now_ms: int) -> None:
        """A heartbeat moved a member towards its target assignment of that epoch."""
        member_id = after.member_id
        since_ms = self.revoking_since.get(member_id)
        if since_ms is not None and not _is_still_revoking(before, after):
            del self.revoking_since[member_id]
            self.revoked[member_id] = replace(after.as_event_member(), wait_ms=now_ms - since_ms)
        if after.has_to_revoke:
            self.revoking_since.setdefault(member_id, now_ms)
        if after.is_reconciled_to(epoch):
            self.lagging.discard(member_id)
        else:
            self.await_member(member_id, now_ms)

    def await_member(self, member_id: str, now_ms: int) -> None:
        """A member does not have its target assignment, which may be an old one."""
        if not self.lagging and not self.is_noted:
            self.started_ms = now_ms
        self.lagging.add(member_id)

    def remove(self, member_id: str) -> None:
        """A member is gone: the reconciliation no longer waits for it."""
        self.lagging.discard(member_id)
        self.revoking_since.pop(member_id, None)
        self.revoked.pop(member_id, None)

    def pause(self, member_id: str) -> None:
        """A static member left for a while: a reconciliation that has begun ends when it is back, or is removed."""
        self.revoking_since.pop(member_id, None)
        if self.is_noted:
            self.lagging.add(member_id)

    def finish(self) -> tuple[EventMember, ...]:
        """End the reconciliation; return the members that had to revoke, the slowest first."""
        slowest_first = sorted(self.revoked.values(), key=lambda member: -member.wait_ms)
        self.is_noted = False
        self.revoked.clear()
        return tuple(slowest_first)


def _is_still_revoking(before: Member, after: Member) -> bool:
    """Return whether what the member had to revoke before is still to be revoked."""
    return after.has_to_revoke and all(
        index in after.pending.get(topic_id, ()) for topic_id, owned in before.pending.items() for index in owned
    )
