"""The topics whose metadata the brokers refuse: their names are invalid, or this client may not read them.

Laws
    C13 Such topics are raised by the next poll, once for each response that refuses them, the first one with the names
        of the others; polls after that read the other topics on. Without that a consumer that lacks an ACL waits for
        ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from rota.client.errors import GRANT_READ_ON_TOPIC, BrokerError
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import TopicInfo
from rota.protocol.errors import ErrorCode

REMEDIES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: GRANT_READ_ON_TOPIC,
    ErrorCode.INVALID_TOPIC_EXCEPTION: "A name has 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-', and is not '.' or '..'.",
}


class TopicRefusals:
    """`topics()`: the names that the consumer reads."""

    def __init__(self, cluster: Cluster, topics: Callable[[], Iterable[str]]) -> None:
        self._cluster, self._topics = cluster, topics
        self._read_at = 0.0  # the time of the last response that was looked at

    def raise_new(self) -> None:
        """Raise BrokerError for a topic that was refused since the last call."""
        metadata = self._cluster.metadata
        if metadata.at == self._read_at:
            return
        self._read_at = metadata.at
        refused = metadata.refused(self._topics())
        if refused:
            first, *others = refused
            also = f" Also refused: {', '.join(map(_named, others))}." if others else ""
            remedy = REMEDIES[ErrorCode(first.error)] + also
            raise BrokerError(first.error, "reading records", topic=first.name, remedy=remedy)


def _named(topic: TopicInfo) -> str:
    return f"{topic.name}: {ErrorCode.of(topic.error).name}"
