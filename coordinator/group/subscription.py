"""Which topics a generation wants, read from its members' subscriptions.

Law
    What a member wrote is untrusted and may be of any version. Topics stand first in every version, so all are read as
    version 0; what cannot be read makes the whole answer "unknown".
"""

from __future__ import annotations

from rota.coordinator.group.effects import GroupValue
from rota.protocol.compiler import codec
from rota.protocol.consumer_protocol import PROTOCOL_TYPE as CONSUMER
from rota.protocol.consumer_protocol import Subscription
from rota.protocol.wire import DecodeError

__all__ = ["CONSUMER", "topics_of"]

VERSION_BYTES = 2


def topics_of(value: GroupValue | None) -> frozenset[str] | None:
    """None: another protocol type, or a subscription that cannot be read."""
    if value is None or value.protocol_type != CONSUMER:
        return None
    try:
        return frozenset(topic for member in value.members for topic in _topics(member.subscription))
    except DecodeError:
        return None


def _topics(subscription: bytes) -> tuple[str, ...]:
    if len(subscription) < VERSION_BYTES:
        raise DecodeError("no version before the subscription")
    return codec(Subscription, 0).decode(subscription, VERSION_BYTES)[0].topics
