"""The topics that a producer sends to: found when they are first sent to, kept up to date from then on.

Laws
    Metadata is asked for topics that were found and for those that somebody waits for, and for no others.
    A topic that is not there is asked for until `max_block_ms` is over: asking may create it.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Final

from rota.client.config import ProducerConfig
from rota.client.errors import BrokerError, IllegalUse
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import Metadata, TopicInfo
from rota.client.producer.accumulator import Accumulator
from rota.client.producer.route import Route
from rota.protocol.errors import ErrorCode

_HOPELESS: Final = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class Topics:
    """`routes` are those that were found, by name."""

    def __init__(self, config: ProducerConfig, cluster: Cluster, accumulator: Accumulator) -> None:
        self._config, self._cluster, self._accumulator = config, cluster, accumulator
        self._asked: dict[str, int] = {}  # how many wait for a topic
        self._closed = False
        self.routes: dict[str, Route] = {}

    async def find(self, topic: str, partition: int | None) -> Route:
        """A topic that has that partition. Raises TimedOut after max_block_ms, BrokerError, IllegalUse."""
        if not isinstance(topic, str):
            raise IllegalUse(f"a topic is a str, not {type(topic).__name__}: {topic!r}")
        if partition is not None and partition < 0:
            raise IllegalUse(f"partition is {partition}: a number from 0, or None to have one chosen")
        route = self.routes.get(topic)
        if route is not None and (partition is None or partition < len(route.queues)):
            return route
        info = await self.look(topic, partition)
        route = self.routes.get(topic) or self._route(topic)
        route.update(info, self._cluster.metadata.brokers)
        if not self._closed:
            self.routes[topic] = route
            self._want()
        return route

    async def look(self, topic: str, partition: int | None = None) -> TopicInfo:
        """What the cluster says of it now. Raises TimedOut, BrokerError."""
        self._asked[topic] = self._asked.get(topic, 0) + 1
        self._want()
        what = f"finding topic {topic}" if partition is None else f"finding partition {partition} of topic {topic}"
        try:
            look = partial(_found, topic, partition)
            return await self._cluster.until(look, what=what, timeout_ms=self._config.max_block_ms)
        finally:
            self._asked[topic] -= 1
            if not self._asked[topic]:
                del self._asked[topic]

    def _route(self, topic: str) -> Route:
        own, by_key = self._config.own_partitioner, self._config.partitions_by_key
        return Route(topic, self._accumulator, own, by_key, random.randrange)

    def _want(self) -> None:
        self._cluster.set_topics(sorted({*self.routes, *self._asked}))

    def update(self, known: Metadata) -> None:
        """Metadata changed."""
        for topic, route in self.routes.items():
            info = known.topics.get(topic)
            if info is not None:
                route.update(info, known.brokers)

    def forget(self) -> None:
        """Nothing is sent any more."""
        self._closed = True
        self.routes.clear()


def _found(topic: str, partition: int | None, known: Metadata) -> TopicInfo | None:
    """What is known of the topic, when it has partitions, and that one. Raises BrokerError when it never will."""
    info = known.topics.get(topic)
    if info is None:
        return None
    if info.error in _HOPELESS:
        raise BrokerError(info.error, "finding the topic", topic=topic)
    if not info.partitions or (partition is not None and partition not in info.partitions):
        return None
    return info
