"""Kafka requests of the HTTP side: to this broker itself, and to others over connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.unit.coordinator.web.conftest import PROPERTIES, World

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.web import broker_requests as module
from rota.coordinator.web.broker_requests import ApiError, BrokerRequests, check
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_groups import ListGroupsRequest
from rota.protocol.messages.metadata import MetadataRequest


@pytest.fixture
async def other(world: World) -> AsyncIterator[Broker]:
    """A broker that the first one believes to be broker 7 of its cluster."""
    async with Broker(BrokerConfig({**PROPERTIES, "node.id": "7", "rota.http.listener": ""}), memory=True) as broker:
        registration = BrokerRegistration(broker_id=7, endpoints=(Endpoint("PLAINTEXT", *broker.address),))
        topics = world.broker.node.topics
        topics.apply_brokers({**topics.brokers, 7: registration})
        yield broker


async def test_requests_to_another_broker_share_one_connection(world: World, other: Broker) -> None:
    requests = BrokerRequests(world.broker.node)
    for _ in range(2):
        answer = await requests.send_request(7, MetadataRequest(topics=()), 9)
        assert answer.controller_id == 7
    assert len(requests._connections) == 1
    assert [broker for broker, _ in await requests.send_request_to_all(ListGroupsRequest(), 4)] == [0, 7]
    requests.stop()


async def test_a_broker_that_does_not_answer_is_left_out(world: World) -> None:
    topics = world.broker.node.topics
    removed = replace(topics.brokers[0], broker_id=7, endpoints=(Endpoint("PLAINTEXT", "127.0.0.1", 1),))
    topics.apply_brokers({**topics.brokers, 7: removed})
    requests = BrokerRequests(world.broker.node)
    assert [broker for broker, _ in await requests.send_request_to_all(ListGroupsRequest(), 4)] == [0]
    with pytest.raises(ApiError, match="broker 7 did not answer ListGroups"):
        await requests.send_request(7, ListGroupsRequest(), 4)
    with pytest.raises(ApiError, match="broker 9 is not alive"):
        await requests.send_request(9, ListGroupsRequest(), 4)


async def test_wb15_requests_to_a_broker_that_does_not_answer_share_one_attempt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETUP_SECONDS", 0.05)
    attempts: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: attempts.append(writer), "127.0.0.1", 0)
    topics = world.broker.node.topics
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", silent.sockets[0].getsockname()[1])
    topics.apply_brokers({**topics.brokers, 7: replace(topics.brokers[0], broker_id=7, endpoints=(endpoint,))})
    requests = BrokerRequests(world.broker.node)
    answers = await asyncio.gather(
        *(requests.send_request(7, ListGroupsRequest(), 4) for _ in range(5)), return_exceptions=True
    )
    assert all(isinstance(answer, ApiError) for answer in answers)
    assert len(attempts) == 1
    with pytest.raises(ApiError):
        await requests.send_request(7, ListGroupsRequest(), 4)
    assert len(attempts) == 2, "a later request tries again"
    for writer in attempts:
        writer.close()
    silent.close()


async def test_wb15_a_request_that_is_cancelled_ends_no_attempt_of_others(world: World, other: Broker) -> None:
    requests = BrokerRequests(world.broker.node)
    first, second = (asyncio.ensure_future(requests.send_request(7, MetadataRequest(topics=()), 9)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).controller_id == 7
    requests.stop()


def test_a_code_of_kafka_becomes_a_status() -> None:
    check(ErrorCode.NONE, "t")
    for code, status in ((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 404), (ErrorCode.NON_EMPTY_GROUP, 409)):
        with pytest.raises(ApiError, match=code.name) as raised:
            check(code, "t")
        assert raised.value.status == status
