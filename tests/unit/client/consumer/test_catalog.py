"""Topics as a consumer shows them."""

from __future__ import annotations

import pytest
from tests.unit.client.network.scripted import Scripted

from rota.client.config import ClientConfig
from rota.client.consumer.catalog import catalog, partitions_of
from rota.client.errors import BrokerError
from rota.client.network.cluster import Cluster
from rota.client.types import PartitionInfo
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponsePartition, MetadataResponseTopic


def topic(name: str, *numbers: int, error: int = 0) -> MetadataResponseTopic:
    several = tuple(
        MetadataResponsePartition(partition_index=item, leader_id=1, leader_epoch=2, replica_nodes=(1, 2))
        for item in numbers
    )
    return MetadataResponseTopic(name=name, partitions=several, error_code=error)


def test_partitions_are_sorted() -> None:
    assert [item.partition for item in partitions_of(topic("orders", 2, 0, 1))] == [0, 1, 2]
    assert partitions_of(topic("orders", 0)) == (PartitionInfo("orders", 0, 1, 2, (1, 2), ()),)


@pytest.mark.parametrize("names", [None, ["orders", "absent"]])
async def test_unknown_topics_are_left_out_and_not_created(names: list[str] | None) -> None:
    absent = topic("absent", error=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    async with Scripted() as broker:
        broker.on(MetadataRequest, lambda _: broker.metadata(topic("orders", 0), absent))
        cluster = Cluster(ClientConfig(bootstrap_servers=broker.address))
        await cluster.start()
        try:
            assert list(await catalog(cluster, names)) == ["orders"]
        finally:
            await cluster.close()
        requests = broker.requests[-1]
    assert not requests.allow_auto_topic_creation
    assert (requests.topics is None) == (names is None)


async def test_an_unauthorized_topic_is_an_error() -> None:
    denied = topic("secrets", error=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    async with Scripted() as broker:
        broker.on(MetadataRequest, lambda _: broker.metadata(denied))
        cluster = Cluster(ClientConfig(bootstrap_servers=broker.address))
        await cluster.start()
        try:
            with pytest.raises(BrokerError, match="secrets"):
                await catalog(cluster, ["secrets"])
        finally:
            await cluster.close()
