"""JoinGroup, branch by branch (R20-R24): who may come in, and what its coming means in each state.

Laws
    G2  A member that is told the current generation is told the one that is recorded, with its recorded members.
    G3  A stranger, a fenced instance or foreign protocols change nothing and get their code.
    G4  A JoinGroup that comes again supersedes the one that waits, which is answered REBALANCE_IN_PROGRESS.
    A group comes into being by a JoinGroup without a member id, refused ones included; as in Kafka an empty record of
    it is appended then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rota.coordinator.group import notes
from rota.coordinator.group import static_member as takeover
from rota.coordinator.group.effects import GroupRecord, GroupValue, Joined
from rota.coordinator.group.events import NOBODY, Join, MemberId
from rota.coordinator.group.members import Member, member_of, pending_timer
from rota.coordinator.group.rebalance import complete_if_all_joined, joined, prepare_or_complete
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.turn import Turn


PENDING_MEMBERS_MAX: Final = 10_000  # ids given and not come back with; beyond it the oldest is a stranger again


def join(group: Group, event: Join, turn: Turn) -> None:
    if not group.config.session_min_ms <= event.session_ms <= group.config.session_max_ms:
        _refuse(event, event.member_id, ErrorCode.INVALID_SESSION_TIMEOUT, turn)
    elif group.is_vacant and event.member_id:
        _refuse(event, event.member_id, _no_such_group(group), turn)
    else:
        is_born = group.is_vacant and group.state is not GroupState.DEAD
        if is_born:
            _be_born(group, turn)
        _accepted_or_refused(group, event, turn)


def _no_such_group(group: Group) -> ErrorCode:
    is_dead = group.state is GroupState.DEAD
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_dead else ErrorCode.UNKNOWN_MEMBER_ID


def _be_born(group: Group, turn: Turn) -> None:
    group.state_ms = turn.wall_ms
    value = GroupValue(protocol_type="", generation=0, protocol=None, leader=None, state_ms=turn.wall_ms)
    group.record(GroupRecord(group.group_id, value), turn)


def _accepted_or_refused(group: Group, event: Join, turn: Turn) -> None:
    if group.state is GroupState.DEAD:
        _refuse(event, event.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE, turn)
    elif not _has_room(group, event.member_id):
        turn.note(notes.GROUP_FULL, group.fields(member=event.member_id, members=len(group.members)))
        group.forget(event.member_id, turn)
        _refuse(event, NOBODY, ErrorCode.GROUP_MAX_SIZE_REACHED, turn)
        complete_if_all_joined(group, turn)  # it may have been the one that was waited for
    elif not _fits(group, event):
        _refuse(event, event.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, turn)
    elif event.member_id == NOBODY:
        _unknown(group, event, turn)
    elif event.member_id in group.members.pending:
        _pending(group, event, turn)
    else:
        _known(group, event, turn)


def _has_room(group: Group, member_id: MemberId) -> bool:
    """While joins are awaited those that wait count, so that of a group grown too large the last to rejoin go (R21)."""
    members, size_max = group.members, group.config.group_size_max
    member = members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING:
        return (member is not None and member.join is not None) or members.awaiting_join < size_max
    return member is not None or len(members) < size_max


def _fits(group: Group, event: Join) -> bool:
    if group.state is GroupState.EMPTY:
        return bool(event.protocol_type and event.protocols)
    return event.protocol_type == group.protocol_type and group.members.supports(event.protocols)


# ---- members without an id


def _unknown(group: Group, event: Join, turn: Turn) -> None:
    if event.instance_id is not None:
        holder = group.members.by_instance.get(event.instance_id)
        if holder is not None:
            takeover.take_over(group, event, group.members.by_id[holder], turn)
        else:
            _add(group, event, event.fresh_id, notes.STATIC_ADDED, turn)
    elif event.requires_known_id:
        _ask_to_come_back(group, event, turn)
    else:
        _add(group, event, event.fresh_id, notes.MEMBER_ADDED, turn)


def _ask_to_come_back(group: Group, event: Join, turn: Turn) -> None:
    """KIP-394: an id first, so that a client which gives up and retries leaves no ghost behind."""
    turn.note(notes.MEMBER_ID_REQUIRED, group.fields(member=event.fresh_id, client_id=event.client_id))
    pending = group.members.pending
    if len(pending) >= PENDING_MEMBERS_MAX:
        oldest = next(iter(pending))
        turn.disarm(pending_timer(oldest))
        group.forget(oldest, turn)
    pending[event.fresh_id] = None
    turn.arm(pending_timer(event.fresh_id), turn.now_ms + event.session_ms)
    _refuse(event, event.fresh_id, ErrorCode.MEMBER_ID_REQUIRED, turn)


def _pending(group: Group, event: Join, turn: Turn) -> None:
    if event.instance_id is not None:  # ids are never given to static members in advance: Kafka calls it its own error
        _refuse(event, NOBODY, ErrorCode.UNKNOWN_SERVER_ERROR, turn)
        return
    turn.disarm(pending_timer(event.member_id))
    _add(group, event, event.member_id, notes.PENDING_JOINED, turn)


def _add(group: Group, event: Join, member_id: MemberId, what: str, turn: Turn) -> None:
    turn.note(what, group.fields(member=member_id, instance=event.instance_id, client_id=event.client_id))
    if not group.members:
        group.protocol_type = event.protocol_type
    if group.initial is not None:
        group.initial.grew = True
    member = member_of(event, member_id)
    group.members.add(member)
    group.members.park_join(member, event.token)
    # it does not know its id yet and cannot send heartbeats; and its death cannot be seen while it waits
    group.expect(member, turn.now_ms + group.config.new_member_join_ms, turn)
    reason = f"Adding new member {member_id} with group instance id {event.instance_id}"
    prepare_or_complete(group, turn, reason, event.reason)


# ---- members with an id


def _known(group: Group, event: Join, turn: Turn) -> None:
    error = group.members.check(event.member_id, event.instance_id)
    if error is not ErrorCode.NONE:
        group.note_fencing(error, event.member_id, event.instance_id, "join-group", turn)
        _refuse(event, event.member_id, error, turn)
        return
    member = group.members.by_id[event.member_id]
    reason = _why_rebalance(group, event, member)
    if reason is None:
        turn.reply(event.token, joined(group, member))
    else:
        _rejoin(group, event, member, reason, turn)


def _why_rebalance(group: Group, event: Join, member: Member) -> str | None:
    """None: nothing changed, the member just asks again for the generation it has."""
    if group.state is GroupState.PREPARING:
        return "joins during the rebalance"
    if group.state is GroupState.STABLE and group.members.leader == event.member_id:
        # the leader may know of changes that no member's metadata shows: partitions that were added
        return f"Leader {event.member_id} re-joining group during {group.state.value}"
    if member.protocols != event.protocols:
        return f"Updating metadata for member {event.member_id} during {group.state.value}"
    return None


def _rejoin(group: Group, event: Join, member: Member, reason: str, turn: Turn) -> None:
    group.members.update(member, event)
    superseded = group.members.park_join(member, event.token)
    if superseded is not None:
        turn.refuse(superseded, Joined(member_id=event.member_id, error=ErrorCode.REBALANCE_IN_PROGRESS))
    prepare_or_complete(group, turn, reason, event.reason)


def _refuse(event: Join, member_id: MemberId, error: ErrorCode, turn: Turn) -> None:
    turn.refuse(event.token, Joined(member_id=member_id, error=error))
