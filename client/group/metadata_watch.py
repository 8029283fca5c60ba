"""Created, deleted and extended topics: the subscribed topics, and whether a change requires a rejoin (R5, R14).

Laws
    Who joined with a subscription joins again when it is another one: names that were changed, topics that match.
    The leader joins again when a topic of its assignment has another partition count, is created, or is deleted.
"""

from __future__ import annotations

from rota.client.group import leader_assignment
from rota.client.group.events import MetadataChanged, MetadataRefreshed, Subscribed
from rota.client.group.state import MEMBER_STATES, Member
from rota.client.group.subscription import difference, snapshot


def topics_changed(m: Member, event: Subscribed | MetadataChanged | MetadataRefreshed) -> None:
    """A new subscription, or new metadata."""
    match event:
        case Subscribed():
            m.subscription, m.granted, m.is_metadata_fresh = event.topics, frozenset(), False
            m.follow_topics()
        case MetadataChanged():
            m.metadata, m.granted = event.metadata, frozenset()
        case MetadataRefreshed():
            m.metadata = event.metadata
            if event.ticket == m.refresh_ticket:
                m.refresh_ticket, m.is_metadata_fresh, m.granted = None, True, frozenset()
                leader_assignment.metadata_refreshed(m)
    rejoin_if_changed(m)


def rejoin_if_changed(m: Member) -> None:
    """Join again when the topics of the last JoinGroup, or the partitions that the leader assigned, have changed."""
    if m.rejoin is not None or m.state not in MEMBER_STATES or m.subscription is None:
        return
    if m.watched is not None:
        now = snapshot(m.watched, m.metadata)
        if now != m.watched:
            m.request_rejoin("cached metadata has changed", difference(m.watched, now))
            return
    if m.joined_topics != m.topics:
        before, after = sorted(m.joined_topics or ()), sorted(m.topics)
        m.request_rejoin("subscription has changed", f"subscription has changed from {before} to {after}")
