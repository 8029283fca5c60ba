"""Which topics a generation wants, read from its members' subscriptions.

Law
    What a member wrote is untrusted and may be of any version: what cannot be read makes the whole answer "unknown".
"""

from __future__ import annotations

from rota.coordinator.group.effects import GroupValue

CONSUMER = "consumer"  # the protocol type whose subscriptions the coordinator can read


def topics_of(value: GroupValue | None) -> frozenset[str] | None:
    """None: another protocol type, or a subscription that cannot be read."""
    if value is None or value.protocol_type != CONSUMER:
        return None
    return None
