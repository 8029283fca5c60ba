"""Committing, reading what was committed, and finding offsets, on a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.interop.kit import create_topic, produce, produce_to

from rota.client.config import ClientConfig
from rota.client.errors import BrokerError, CommitFailed, UnknownTopic
from rota.client.network.cluster import Cluster
from rota.client.offsets.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from rota.client.offsets.offset_commit import commit
from rota.client.offsets.offset_fetch import committed
from rota.client.types import GroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from rota.protocol.errors import ErrorCode

SHORT_MS = 600


@pytest.fixture
async def cluster(bootstrap: str) -> AsyncIterator[Cluster]:
    cluster = Cluster(ClientConfig(bootstrap_servers=bootstrap, retry_backoff_ms=10))
    await cluster.start()
    yield cluster
    await cluster.close()


def parts(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def offsets(found: dict[TopicPartition, OffsetAndTimestamp | None]) -> list[int | None]:
    return [item and item.offset for _, item in sorted(found.items())]


async def test_where_partitions_begin_and_end(bootstrap: str, cluster: Cluster) -> None:
    topic = create_topic(bootstrap, 3)
    produce(bootstrap, topic, [b"one", b"two", b"three", b"four"])
    three = parts(topic, 3)
    assert offsets(await list_offsets(cluster, dict.fromkeys(three, EARLIEST))) == [0, 0, 0]
    assert offsets(await list_offsets(cluster, dict.fromkeys(three, LATEST))) == [2, 1, 1]
    assert offsets(await list_offsets(cluster, dict.fromkeys(three, LATEST), isolation_level="read_committed")) == [
        2,
        1,
        1,
    ]


async def test_an_offset_for_a_time(bootstrap: str, cluster: Cluster) -> None:
    topic = create_topic(bootstrap, 2)
    produce_to(bootstrap, topic, 0, [b"one", b"two"])
    first, second = parts(topic, 2)
    found = await list_offsets(cluster, {first: 0, second: 0})
    assert found[second] is None
    at = found[first]
    assert at is not None
    assert at.offset == 0
    assert at.timestamp > 0
    late = await list_offsets(cluster, {first: at.timestamp + 3_600_000, second: MAX_TIMESTAMP})
    assert late == {first: None, second: None}
    newest = (await list_offsets(cluster, {first: MAX_TIMESTAMP}))[first]
    assert newest is not None
    assert newest.timestamp >= at.timestamp


async def test_topics_that_the_cluster_follows_are_found_through_its_metadata(bootstrap: str, cluster: Cluster) -> None:
    topic = create_topic(bootstrap, 2)
    cluster.set_topics([topic])
    await cluster.until(lambda known: known.partitions(topic), what="the topic")
    assert offsets(await list_offsets(cluster, dict.fromkeys(parts(topic, 2), EARLIEST))) == [0, 0]


async def test_unknown_topics_and_partitions_raise(bootstrap: str, cluster: Cluster, topic: str) -> None:
    with pytest.raises(UnknownTopic) as raised:
        await list_offsets(cluster, {TopicPartition(topic, 0): EARLIEST}, timeout_ms=SHORT_MS)
    assert raised.value.topic == topic
    there = create_topic(bootstrap, 1)
    with pytest.raises(UnknownTopic, match=f"{there}-7"):
        await list_offsets(cluster, {TopicPartition(there, 7): EARLIEST}, timeout_ms=SHORT_MS)


async def test_a_topic_that_appears_in_time_is_found(bootstrap: str, cluster: Cluster, topic: str) -> None:
    pending = asyncio.create_task(list_offsets(cluster, {TopicPartition(topic, 0): LATEST}, timeout_ms=20_000))
    await asyncio.to_thread(create_topic, bootstrap, 1, name=topic)
    assert offsets(await pending) == [0]


async def test_a_commit_is_read_back(bootstrap: str, cluster: Cluster, group: str) -> None:
    topic = create_topic(bootstrap, 2)
    first, second = parts(topic, 2)
    standalone = GroupMetadata(group)
    assert await committed(cluster, standalone, [first, second]) == {first: None, second: None}
    assert await committed(cluster, standalone, None) == {}
    await commit(cluster, standalone, {first: OffsetAndMetadata(7, "seven", 0)})
    assert await committed(cluster, standalone, [first, second]) == {
        first: OffsetAndMetadata(7, "seven", 0),
        second: None,
    }
    assert await committed(cluster, standalone, None) == {first: OffsetAndMetadata(7, "seven", 0)}
    assert await committed(cluster, standalone, []) == {}
    await commit(cluster, standalone, {})


async def test_a_commit_names_topics_by_id_when_it_can(bootstrap: str, cluster: Cluster, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    cluster.set_topics([topic])
    await cluster.until(lambda known: known.topic_id(topic), what="the topic's id")
    [first] = parts(topic, 1)
    await commit(cluster, GroupMetadata(group), {first: OffsetAndMetadata(3)})
    assert await committed(cluster, GroupMetadata(group), [first]) == {first: OffsetAndMetadata(3)}


@pytest.mark.parametrize("version", [1, 2, 5, 7, 8, 9])
async def test_older_request_versions_return_the_same(bootstrap: str, group: str, version: int) -> None:
    topic = create_topic(bootstrap, 2)
    first, second = parts(topic, 2)

    class Older(Cluster):
        """Speaks no newer version than a broker of some years ago."""

        async def send_request(self, node, request, *, version_max=None, **more):  # type: ignore[no-untyped-def]
            if request.KEY in (8, 9):
                version_max = max(version, 2) if request.KEY == 8 else version
            return await super().send_request(node, request, version_max=version_max, **more)

    cluster = Older(ClientConfig(bootstrap_servers=bootstrap))
    await cluster.start()
    try:
        await commit(cluster, GroupMetadata(group), {first: OffsetAndMetadata(7, "seven")})
        found = await committed(cluster, GroupMetadata(group), [first, second])
        assert found == {first: OffsetAndMetadata(7, "seven"), second: None}
    finally:
        await cluster.close()


async def test_a_commit_of_no_member_is_refused_by_name(bootstrap: str, cluster: Cluster, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    [first] = parts(topic, 1)
    with pytest.raises(CommitFailed, match="max_poll_records") as raised:
        await commit(cluster, GroupMetadata(group, 4, "nobody"), {first: OffsetAndMetadata(1)})
    assert raised.value.partitions == (first,)
    assert isinstance(raised.value.__cause__, BrokerError)


async def test_too_much_metadata_is_refused_with_its_size(bootstrap: str, cluster: Cluster, group: str) -> None:
    topic = create_topic(bootstrap, 2)
    first, second = parts(topic, 2)
    with pytest.raises(BrokerError, match=r"5000 bytes.*4096") as raised:
        await commit(
            cluster, GroupMetadata(group), {first: OffsetAndMetadata(1), second: OffsetAndMetadata(1, "x" * 5000)}
        )
    assert raised.value.code is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert (raised.value.topic, raised.value.partition, raised.value.group) == (topic, 1, group)


async def test_a_commit_for_an_unknown_topic_is_tried_until_the_timeout(
    bootstrap: str, cluster: Cluster, group: str, topic: str
) -> None:
    offset = {TopicPartition(topic, 0): OffsetAndMetadata(1)}
    with pytest.raises(UnknownTopic, match=topic):
        await commit(cluster, GroupMetadata(group), offset, timeout_ms=SHORT_MS)
