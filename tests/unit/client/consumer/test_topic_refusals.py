"""Topics that the brokers refuse: raised instead of a wait without end, by the call that waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.unit.client.consumer.bookkeeper import GROUP, Bookkeeper, Group, consuming
from tests.unit.client.consumer.kit import P0, batch
from tests.unit.client.network.scripted import eventually

from rota.client.consumer.consumer import Consumer
from rota.client.errors import BrokerError
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

TEN_S = 10


def feed() -> Bookkeeper:
    keeper = Bookkeeper(2)
    keeper.write(0, batch(0, 10))
    return keeper


async def first(consumer: Consumer) -> int:
    return (await asyncio.wait_for(consumer.getone(), TEN_S)).offset


async def read_on(consumer: Consumer) -> None:
    while True:
        await first(consumer)


def refusing(keeper: Bookkeeper, code: ErrorCode) -> None:
    """Answer Metadata with this code for the topics "secrets" and "vaults"."""

    def metadata(request: MetadataRequest) -> MetadataResponse:
        own = keeper._metadata(request)
        refused = (MetadataResponseTopic(name=name, error_code=code) for name in ("secrets", "vaults"))
        return replace(own, topics=(*own.topics, *refused))

    for broker in keeper.brokers:
        broker.on(MetadataRequest, metadata)


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION])
async def test_a_topic_that_the_metadata_refuse_is_raised_and_the_others_are_read_on(code: ErrorCode) -> None:
    """Law C13: once for each response, as in Java."""
    keeper, secret, vault = feed(), TopicPartition("secrets", 0), TopicPartition("vaults", 0)
    refusing(keeper, code)
    async with consuming(keeper, metadata_max_age_ms=60_000, enable_auto_commit=False) as consumer:
        consumer.assign([P0, secret, vault])
        for partition in (secret, vault):
            consumer.seek(partition, 3)  # so that no look-up of its offset fails
        with pytest.raises(BrokerError, match=rf"secrets.*Also refused: vaults: {code.name}\.") as raised:
            await read_on(consumer)
        assert (raised.value.code, raised.value.topic) == (code, "secrets")
        await consumer._cluster.refresh()
        with pytest.raises(BrokerError, match="secrets"):
            await first(consumer)
        consumer.assign([P0])
        consumer.seek(P0, 7)
        assert await first(consumer) == 7


def refused_offsets(request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Nothing is committed, and of "secrets" nothing is told."""
    [group] = request.groups
    topics = []
    for requested in group.topics or ():
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if requested.name == "secrets" else 0
        parts = (OffsetFetchResponsePartitions(partition_index=0, committed_offset=-1, error_code=code),)
        topics.append(OffsetFetchResponseTopics(name=requested.name, partitions=parts))
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id=GROUP, topics=tuple(topics)),))


async def test_refused_committed_offsets_delay_no_other_topic_and_are_asked_for_again_after_a_pause() -> None:
    """Law C13, for a user who polls on after the error."""
    keeper = feed()
    keeper.brokers[0].on(OffsetFetchRequest, refused_offsets)
    async with consuming(keeper, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000) as consumer:
        consumer.assign([P0, TopicPartition("secrets", 0)])
        with pytest.raises(BrokerError, match="secrets-0"):
            await read_on(consumer)
        assert [await first(consumer) for _ in range(10)] == list(range(10))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(consumer.getone(), 0.1)
        assert keeper.brokers[0].counted()[OffsetFetchRequest] == 1


async def test_a_subscribed_topic_that_the_metadata_refuse_ends_the_call_that_waits() -> None:
    """Law C13; the group gives nobody its partitions, and the call would wait for ever."""
    keeper = Group()
    refusing(keeper, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.subscribe(["secrets"])
        with pytest.raises(BrokerError, match=r"secrets.*TOPIC_AUTHORIZATION_FAILED"):
            await first(consumer)
        waiting = asyncio.create_task(consumer.getone())
        await eventually(lambda: consumer._polls._poller is waiting)
        await consumer._cluster.refresh()
        with pytest.raises(BrokerError, match="secrets"):  # of a response that changes nothing
            await asyncio.wait_for(waiting, TEN_S)
