"""Requests to another broker: one connection, opened when it is needed, and again after a failure."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.transaction_service.broker_requests import BrokerRequests
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse
from rota.transport.errors import KafkaError

NO_TOPICS = MetadataRequest(topics=())


def know(world: World, broker: Broker) -> None:
    """The address of a broker is registered under its id."""
    listener = world.node.config.inter_broker_listener
    endpoint = Endpoint(listener, *broker.address)
    world.node.topics.apply_brokers({7: BrokerRegistration(broker_id=7, endpoints=(endpoint,))})


def config(port: int = 0) -> BrokerConfig:
    return BrokerConfig({"listeners": f"PLAINTEXT://127.0.0.1:{port}", "node.id": "7"})


async def test_requests_share_a_connection_which_is_opened_again_after_a_failure() -> None:
    world = World()
    requests = BrokerRequests(world.node.topics, world.node.config)
    async with Broker(config(), memory=True) as broker:
        know(world, broker)
        answers = await asyncio.gather(*(requests.send_request(7, NO_TOPICS) for _ in range(5)))
        assert all(isinstance(answer, MetadataResponse) for answer in answers)
        assert len(requests._connections) == 1
        port = broker.address[1]
    with pytest.raises(KafkaError):
        await requests.send_request(7, NO_TOPICS)
    assert requests._connections == {}
    async with Broker(config(port), memory=True) as broker:
        know(world, broker)
        assert isinstance(await requests.send_request(7, NO_TOPICS), MetadataResponse)
        await requests.stop()
    assert requests._connections == {}


async def test_a_broker_that_is_not_registered_is_not_asked() -> None:
    world = World()
    with pytest.raises(KafkaError, match="broker 9 is not registered"):
        await BrokerRequests(world.node.topics, world.node.config).send_request(9, NO_TOPICS)


async def test_a_request_may_come_from_outside_of_a_task() -> None:
    """A handler of a request runs in the loop's callback until it has to wait."""
    world = World()
    requests = BrokerRequests(world.node.topics, world.node.config)
    async with Broker(config(), memory=True) as broker:
        know(world, broker)
        answer = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(
            lambda: eager_tasks.start(requests.send_request(7, NO_TOPICS)).then(answer.set_result)
        )
        assert isinstance(await answer, MetadataResponse)
        await requests.stop()
