"""The topics that a producer sends to: looked up at the first send, kept up to date, forgotten when idle.

Laws
    Metadata is read for topics that were found and for those that a caller waits for, and for no others.
    A topic that does not exist is looked up until `max_block_ms` is over; the lookup may create it.
    A topic without sends for `metadata_max_idle_ms` is forgotten.
    A metadata request may create a topic only while a caller or a record waits for it and the cluster does not have
    it: neither a refresh nor the look-up of another topic creates a deleted topic again.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from rota.client.checks import wire_name
from rota.client.config import ProducerConfig
from rota.client.errors import BrokerError, IllegalUse
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import Metadata, TopicInfo
from rota.client.producer.accumulator import Accumulator
from rota.client.producer.route import Route


class Topics:
    """`routes`: the topics that were found, by name."""

    def __init__(self, config: ProducerConfig, cluster: Cluster, accumulator: Accumulator) -> None:
        self._config, self._cluster, self._accumulator = config, cluster, accumulator
        self._waiting: Counter[str] = Counter()  # callers that wait for a topic, or for memory for a record of it
        self._draining: dict[str, Route] = {}  # after `close`
        self._closed = False
        self.routes: dict[str, Route] = {}

    async def find(self, topic: str, partition: int | None) -> Route:
        """The route of a topic that has the partition. Raises TimedOut after max_block_ms, BrokerError, IllegalUse."""
        _check_topic(topic)
        if partition is not None and partition < 0:
            raise IllegalUse(f"partition is {partition}: a number from 0, or None to have one chosen")
        route = self.routes.get(topic)
        if route is None or not (partition is None or partition < len(route.queues)):
            info = await self.look(topic, partition)
            route = self.routes.get(topic) or self._route(topic)
            route.update(info, self._cluster.metadata.brokers)
            if not self._closed:
                self.routes[topic] = route
                self._set_topics()
        route.used_ms = _now_ms()
        return route

    async def look(self, topic: str, partition: int | None = None) -> TopicInfo:
        """The topic in the metadata, when it has that partition. Raises TimedOut, BrokerError."""
        what = f"finding topic {topic}" if partition is None else f"finding partition {partition} of topic {topic}"
        with self.waiting(topic):
            self._set_topics()
            look = partial(_found, topic, partition)
            return await self._cluster.until(look, what=what, timeout_ms=self._config.max_block_ms)

    @contextmanager
    def waiting(self, topic: str) -> Iterator[None]:
        """The topic is not forgotten until the context ends. Raises IllegalUse for what is no name."""
        _check_topic(topic)
        self._waiting[topic] += 1
        try:
            yield
        finally:
            self._waiting[topic] -= 1
            if not self._waiting[topic]:
                del self._waiting[topic]

    def before_refresh(self) -> set[str]:
        """Forget idle topics; return the topics that a metadata request may create."""
        self._forget_idle()
        known = self._cluster.metadata.topics
        routes = {**self._draining, **self.routes}
        needed = {*self._waiting, *(topic for topic, route in routes.items() if route.has_batches)}
        return {topic for topic in needed if topic not in known or not known[topic].partitions}

    def _forget_idle(self) -> None:
        used_since = _now_ms() - self._config.metadata_max_idle_ms
        idle = [
            topic
            for topic, route in self.routes.items()
            if route.used_ms <= used_since and not route.has_batches and topic not in self._waiting
        ]
        for topic in idle:
            self._accumulator.forget(self.routes.pop(topic).queues)
        if idle:
            self._set_topics()

    def _route(self, topic: str) -> Route:
        own, by_key = self._config.own_partitioner, self._config.is_partitioned_by_key
        return Route(topic, self._accumulator, own, by_key, random.randrange)

    def _set_topics(self) -> None:
        self._cluster.set_topics(sorted({*self._draining, *self.routes, *self._waiting}))

    def update(self, known: Metadata) -> None:
        """Give new metadata to the routes."""
        for topic, route in (*self._draining.items(), *self.routes.items()):
            info = known.topics.get(topic)
            if info is not None:
                route.update(info, known.brokers)

    def close(self) -> None:
        """End sends; buffered records still follow the leaders that the metadata names."""
        self._closed = True
        self._draining, self.routes = self.routes, {}


def _check_topic(topic: object) -> None:
    if not isinstance(topic, str):
        raise IllegalUse(f"a topic is a str, not {type(topic).__name__}: {topic!r}")
    wire_name("topic", topic)


def _found(topic: str, partition: int | None, known: Metadata) -> TopicInfo | None:
    """What is known of the topic, when it has partitions, and that one. Raises BrokerError when it never will."""
    info = known.topics.get(topic)
    if info is None:
        return None
    if info.is_refused:
        raise BrokerError(info.error, "finding the topic", topic=topic)
    if not info.partitions or (partition is not None and partition not in info.partitions):
        return None
    return info


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
