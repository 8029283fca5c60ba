"""JoinGroup and SyncGroup that only wait, or only read: decided without event and effects, for speed (docs/adr/0014).

Most requests of a rebalance are such: a known member rejoins as it was while others are missing, or fetches its part.
What is decided here is what `join` and `sync` would decide; where they would do anything else, nothing is changed and
the answer is no.

Laws
    G4a `park_join` and `park_sync` accept a request only if the step of its event would have no effects, and leave the
        group as that step would.
    G4a `assignment_of` returns a part only if the step of its event would have no effect but the reply with that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rota.coordinator.group.effects import Synced
from rota.coordinator.group.events import InstanceId, MemberId, Proto, Token
from rota.coordinator.group.members import Member
from rota.coordinator.group.state import ClassicGroup
from rota.coordinator.group.sync import synced
from rota.coordinator.group.transitions import GroupState

# bound once: looking a member of an enum up costs as much as a comparison
_PREPARING, _COMPLETING, _STABLE = GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE


class Assignor(Protocol):
    """An assignor with the member's subscription: a Proto, or what a JoinGroup has of it."""

    name: str
    metadata: bytes


def park_join(
    group: ClassicGroup,
    token: Token,
    member_id: MemberId,
    instance_id: InstanceId | None,
    client: tuple[str, str],
    timeouts_ms: tuple[int, int],
    protocol_type: str,
    protocols: Sequence[Assignor],
    now_ms: int,
) -> bool:
    """Let the JoinGroup of a known member wait for the others; False, and nothing changed, if a step has to decide.

    `client` is (id, host), `timeouts_ms` (session, rebalance).
    """
    members, config = group.members, group.config
    if group.state is not _PREPARING:
        return False
    member = members.by_id.get(member_id)
    if member is None or member.join is not None or member.instance_id != instance_id:
        return False
    session_ms, rebalance_ms = timeouts_ms
    awaited = members.awaiting_join + 1
    if (
        (awaited >= len(members.by_id) and group.initial is None and not members.pending)  # it is the last one
        or awaited > config.group_size_max
        or not config.session_min_ms <= session_ms <= config.session_max_ms
        or (member.client_id, member.client_host) != client
        or protocol_type != group.protocol_type
        or not _are_equal(member.protocols, protocols)
        or not members.supports(member.protocols)
        or not group.can_fit_in_record(members.record_bytes)
    ):
        return False
    member.session_ms, member.rebalance_ms = session_ms, rebalance_ms
    member.join, member.joined_ms = token, now_ms
    members.awaiting_join = awaited
    return True


def _are_equal(ours: Sequence[Proto], theirs: Sequence[Assignor]) -> bool:
    if len(ours) != len(theirs):
        return False
    for one, other in zip(ours, theirs, strict=True):
        if one.name != other.name or one.metadata != other.metadata:
            return False
    return True


def park_sync(
    group: ClassicGroup,
    token: Token,
    member_id: MemberId,
    instance_id: InstanceId | None,
    generation: int,
    protocol: tuple[str | None, str | None],
) -> bool:
    """Let the SyncGroup of a follower wait for the assignment; False, and nothing changed, if a step has to decide.

    `protocol` is the requested (type, assignor); None where the request has none.
    """
    if group.state is not _COMPLETING or member_id == group.members.leader:
        return False
    member = _member_to_sync(group, member_id, instance_id, generation, protocol)
    if member is None or member.sync is not None:
        return False
    group.members.unsynced.pop(member_id, None)
    member.sync = token
    return True


def assignment_of(
    group: ClassicGroup,
    member_id: MemberId,
    instance_id: InstanceId | None,
    generation: int,
    protocol: tuple[str | None, str | None],
) -> Synced | None:
    """Return the part of a member in the generation that has its assignment; None if a step has to decide."""
    if group.state is not _STABLE:
        return None
    member = _member_to_sync(group, member_id, instance_id, generation, protocol)
    if member is None:
        return None
    group.members.unsynced.pop(member_id, None)
    return synced(group, member)


def _member_to_sync(
    group: ClassicGroup,
    member_id: MemberId,
    instance_id: InstanceId | None,
    generation: int,
    protocol: tuple[str | None, str | None],
) -> Member | None:
    """Return the member, unless its SyncGroup would be refused, or disarm the timer of those who did not sync."""
    members = group.members
    member = members.by_id.get(member_id)
    if member is None or generation != group.generation:
        return None
    if instance_id is not None and member.instance_id != instance_id:
        return None
    protocol_type, name = protocol
    if protocol_type is not None and protocol_type != (group.protocol_type or protocol_type):
        return None
    if name is not None and group.protocol is not None and name != group.protocol:
        return None
    unsynced = members.unsynced
    return None if len(unsynced) == 1 and member_id in unsynced else member
