"""Topics that the brokers refuse: raised instead of a wait without end, by the call that waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.unit.client.consumer.bookkeeper import Bookkeeper, Group, consuming
from tests.unit.client.consumer.kit import P0, batch

from rota.client.consumer.consumer import Consumer
from rota.client.errors import BrokerError
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic

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
    """Answer Metadata with this code for the topic "secrets"."""

    def metadata(request: MetadataRequest) -> MetadataResponse:
        own = keeper._metadata(request)
        return replace(own, topics=(*own.topics, MetadataResponseTopic(name="secrets", error_code=code)))

    for broker in keeper.brokers:
        broker.on(MetadataRequest, metadata)


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION])
async def test_a_topic_that_the_metadata_refuse_is_raised_and_the_others_are_read_on(code: ErrorCode) -> None:
    """Law C13: once for each response, as in Java."""
    keeper, secret = feed(), TopicPartition("secrets", 0)
    refusing(keeper, code)
    async with consuming(keeper, metadata_max_age_ms=60_000, enable_auto_commit=False) as consumer:
        consumer.assign([P0, secret])
        consumer.seek(secret, 3)  # so that no look-up of its offset fails
        with pytest.raises(BrokerError, match="secrets") as raised:
            await read_on(consumer)
        assert (raised.value.code, raised.value.topic) == (code, "secrets")
        await consumer._cluster.refresh()
        with pytest.raises(BrokerError, match="secrets"):
            await first(consumer)
        consumer.assign([P0])
        consumer.seek(P0, 7)
        assert await first(consumer) == 7


async def test_a_subscribed_topic_that_the_metadata_refuse_ends_the_call_that_waits() -> None:
    """Law C13; the group gives nobody its partitions, and the call would wait for ever."""
    keeper = Group()
    refusing(keeper, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with consuming(keeper) as consumer:
        consumer.subscribe(["secrets"])
        with pytest.raises(BrokerError, match=r"secrets.*TOPIC_AUTHORIZATION_FAILED"):
            await first(consumer)
