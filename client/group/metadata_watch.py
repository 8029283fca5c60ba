"""Topics that come, go and grow: what is subscribed to now, and when that is a reason to join again (R5, R14).

Laws
    Who joined with a subscription joins again when it is another one: names that were changed, topics that match.
    The leader joins again when a topic that it assigned by has other partitions, is there at last, or is gone.
"""

from __future__ import annotations

from rota.client.group import leader_assignment
from rota.client.group.events import Known, Learned, Subscribed
from rota.client.group.state import MEMBER_STATES, Member
from rota.client.group.subscription import difference, snapshot


def told(m: Member, event: Subscribed | Known | Learned) -> None:
    """The user chose, or the cluster changed."""
    match event:
        case Subscribed():
            m.subscription, m.granted, m.learned = event.topics, frozenset(), False
            m.want()
        case Known():
            m.metadata, m.granted = event.metadata, frozenset()
        case Learned():
            m.metadata = event.metadata
            if event.ticket == m.learning:
                m.learning, m.learned, m.granted = None, True, frozenset()
                leader_assignment.learned(m)
    look(m)


def look(m: Member) -> None:
    """Join again when what the last JoinGroup told, or what the leader assigned by, is no longer so."""
    if m.rejoin is not None or m.state not in MEMBER_STATES or m.subscription is None:
        return
    if m.watched is not None:
        now = snapshot(m.watched, m.metadata)
        if now != m.watched:
            m.ask_to_rejoin("cached metadata has changed", difference(m.watched, now))
            return
    if m.joined_topics != m.topics:
        before, after = sorted(m.joined_topics or ()), sorted(m.topics)
        m.ask_to_rejoin("subscription has changed", f"subscription has changed from {before} to {after}")
