"""Take an assignment over, in `poll`: revoke the partitions that are missing, assign the new ones.

Laws
    A partition that is kept is neither revoked nor assigned again (KIP-429).
    An assignment of topics that are not subscribed to any more is not taken over; the member joins again.
"""

from __future__ import annotations

from rota.client.errors import AssignmentFailed
from rota.client.group import metadata_watch, notes
from rota.client.group.effects import Assign, Hook, Lose, Revoke
from rota.client.group.state import NEEDS_REVOCATION, Assigned, Member
from rota.client.group.states import MemberState
from rota.client.group.subscription import is_subscribed
from rota.client.types import TopicPartition

S = MemberState


def proceed(m: Member) -> None:
    """Begin the next hook, or end the assignment. Only in a poll, with no hook running."""
    pending = m.pending
    assert pending is not None
    subscription = m.subscription
    if subscription is None or not all(
        is_subscribed(subscription, partition.topic) for partition in pending.partitions
    ):
        m.pending = None
        m.request_rejoin("received assignment does not match the current subscription")
        _settle(m)
        return
    removed = m.owned - pending.partitions
    if removed:
        _note(m, pending)
        partitions = tuple(sorted(removed))
        m.request_rejoin(NEEDS_REVOCATION, f"need to revoke partitions {_names(partitions)}")
        m.note("info", notes.REVOKING, partitions=_names(partitions))
        m.run(Revoke(partitions))
    else:
        _take_over(m, pending)


def _take_over(m: Member, pending: Assigned) -> None:
    if m.rejoin is None:
        _note(m, pending)
    m.pending = None
    _grant(m, pending)
    m.after_hook = _call_on_assignment(m, pending)
    added = tuple(sorted(pending.partitions - m.owned))
    m.owned = pending.partitions
    m.note("info", notes.ADDING, partitions=_names(added))
    m.run(Assign(tuple(sorted(m.owned)), added))


def _grant(m: Member, pending: Assigned) -> None:
    """The leader may know topics that match our pattern before we do: they count as subscribed."""
    new = frozenset(partition.topic for partition in pending.partitions) - m.topics
    if new and m.joined_topics is not None:
        m.granted |= new
        m.joined_topics |= new
        m.refresh_metadata()


def _call_on_assignment(m: Member, pending: Assigned) -> AssignmentFailed | None:
    assignor = m.assignors.get(m.assignor_name)
    try:
        if assignor is not None:
            assignor.on_assignment(tuple(sorted(pending.partitions)), pending.user_data, m.generation)
    except Exception as error:  # noqa: BLE001  # whatever an assignor of the user's raises
        failed = AssignmentFailed(f"assignor {m.assignor_name} failed to take note of an assignment: {error!r}")
        failed.__cause__ = error
        return failed
    return None


def done(m: Member, hook: Hook) -> None:
    """A hook ended, with success or not: the partitions are revoked or assigned all the same."""
    match hook:
        case Revoke(partitions) | Lose(partitions):
            m.owned -= frozenset(partitions)
        case Assign() if m.state is S.ASSIGNING:
            _settle(m)
        case _:
            pass


def _settle(m: Member) -> None:
    m.move(S.STABLE)
    if m.coordinator is None:
        m.move(S.REDISCOVERING)
    metadata_watch.rejoin_if_changed(m)


def _note(m: Member, pending: Assigned) -> None:
    new, old = pending.partitions, m.owned
    m.note(
        "info",
        notes.ASSIGNMENT,
        assigned=_names(sorted(new)),
        owned=_names(sorted(old)),
        added=_names(sorted(new - old)),
        revoked=_names(sorted(old - new)),
    )


def _names(partitions: tuple[TopicPartition, ...] | list[TopicPartition]) -> list[str]:
    return [str(partition) for partition in partitions]
