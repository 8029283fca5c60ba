"""Two scripted brokers, and a cluster that is connected to both."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.client.network.scripted import EVERYTHING, Scripted

from rota.client.admin.requests import Deadline
from rota.client.config import ClientConfig
from rota.client.network.cluster import Cluster
from rota.protocol.messages.api_versions import ApiVersion
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TIMEOUT_MS = 5_000


class Pair:
    """`one` is broker 0, the controller; `two` is broker 1. `topics`: leaders by name, in the order of partitions;
    `coordinators`: broker by group."""

    def __init__(self) -> None:
        self.one, self.two = Scripted(0), Scripted(1)
        self.topics: dict[str, list[int]] = {}
        self.ids: dict[str, bytes] = {}
        self.coordinators: dict[str, int] = {}
        for broker in self.both:
            broker.peers = list(self.both)
            broker.on(MetadataRequest, self.metadata)
            broker.on(FindCoordinatorRequest, self.coordinator)

    @property
    def both(self) -> tuple[Scripted, Scripted]:
        return self.one, self.two

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = list(self.topics) if request.topics is None else [str(item.name) for item in request.topics]
        return self.one.metadata(*(self._topic(name) for name in names))

    def coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        found = []
        for group in request.coordinator_keys:
            broker = self.both[self.coordinators.get(group, 0)]
            found.append(Coordinator(key=group, node_id=broker.node, host="127.0.0.1", port=broker.port))
        return FindCoordinatorResponse(coordinators=tuple(found))

    def requests(self, request: type) -> list[list[object]]:
        """The requests of this type that each broker received."""
        return [[item for item in broker.requests if type(item) is request] for broker in self.both]

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(name=name, error_code=3)
        parts = tuple(
            MetadataResponsePartition(partition_index=number, leader_id=leader, replica_nodes=(0, 1), isr_nodes=(0, 1))
            for number, leader in enumerate(self.topics[name])
        )
        internal = name.startswith("__")
        return MetadataResponseTopic(
            name=name, topic_id=self.ids.get(name, bytes(16)), partitions=parts, is_internal=internal
        )


def until_version(request: Any, version_max: int) -> tuple[ApiVersion, ...]:
    """The ApiVersions of a broker that supports this API up to `version_max`."""
    return tuple(
        dataclasses.replace(item, max_version=version_max) if item.api_key == request.KEY else item
        for item in EVERYTHING
    )


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    async with pair.one, pair.two:
        yield pair


@pytest.fixture
async def cluster(pair: Pair) -> AsyncIterator[Cluster]:
    config = ClientConfig(
        bootstrap_servers=pair.one.address, retry_backoff_ms=1, retry_backoff_max_ms=2, request_timeout_ms=2_000
    )
    cluster = Cluster(config)
    await cluster.start()
    yield cluster
    await cluster.close()


@pytest.fixture
async def deadline() -> Deadline:
    return Deadline(TIMEOUT_MS, 2_000)


@pytest.fixture
async def soon() -> Deadline:
    """A short deadline, for calls that must fail."""
    return Deadline(150, 100)


@pytest.fixture
async def later() -> Deadline:
    """A longer deadline, for calls that fail in part."""
    return Deadline(1_000, 800)
