import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.client.network.scripted import EVERYTHING, Scripted, eventually

from rota.client.config import ClientConfig
from rota.client.errors import Unreachable
from rota.client.network.brokers import Brokers
from rota.client.network.metadata import BrokerInfo, Metadata
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

LIST_GROUPS = ListGroupsRequest()
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class World:
    """Three brokers, of which the first is the bootstrap address."""

    def __init__(self, brokers: list[Scripted]) -> None:
        self.brokers = brokers
        self.known = Metadata()
        self.broke = 0

    def client(self, **settings: Any) -> Brokers:
        config = ClientConfig(bootstrap_servers=self.brokers[0].address, reconnect_backoff_ms=1, **settings)
        return Brokers(config, lambda: self.known, self._broke)

    def set_nodes(self, *nodes: int) -> None:
        self.known = Metadata(brokers={node: BrokerInfo(node, "127.0.0.1", self.brokers[node].port) for node in nodes})

    def _broke(self) -> None:
        self.broke += 1


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = [Scripted(node) for node in range(3)]
    for item in made:
        await item.listen()
        item.on(ListGroupsRequest, lambda _: ListGroupsResponse())
    yield World(made)
    for item in made:
        await item.stop()


async def test_each_lane_has_its_own_connection(world: World) -> None:
    world.set_nodes(0, 1)
    brokers = world.client()
    first = await brokers.open(1)
    assert await brokers.open(1) is first is brokers.ready(1, "")
    assert await brokers.open(1, "fetch") is not first
    assert await brokers.any_lane(1) in (first, brokers.ready(1, "fetch"))
    assert world.brokers[1].connections == 2
    assert brokers.ready(0, "") is None
    await brokers.close()


async def test_opening_an_unknown_broker_raises_unreachable(world: World) -> None:
    world.set_nodes(0)
    brokers = world.client()
    with pytest.raises(Unreachable, match=r"no broker 5 is known in the cluster; known are: 0 \(127.0.0.1:\d+\)"):
        await brokers.open(5)
    await brokers.close()


async def test_a_broker_that_has_moved_gets_another_connection(world: World) -> None:
    world.set_nodes(0, 1)
    brokers = world.client()
    await brokers.open(1, "fetch")
    world.known = Metadata(brokers={1: BrokerInfo(1, "127.0.0.1", world.brokers[2].port)})
    world.brokers[1].drop()
    await eventually(lambda: brokers.ready(1, "fetch") is None)
    await brokers.open(1, "fetch")
    assert world.brokers[2].connections == 1
    assert world.broke == 1
    await brokers.close()


async def test_ask_any_uses_the_least_loaded_broker(world: World) -> None:
    world.set_nodes(0, 1, 2)
    for item in world.brokers:
        item.on(HeartbeatRequest, lambda _: None)
    brokers = world.client(reconnect_backoff_max_ms=60_000)
    connections = [await brokers.open(node) for node in (0, 1)]
    pending = [asyncio.create_task(connections[0].send_request(HEARTBEAT, 10))]
    await eventually(lambda: connections[0].in_flight)
    assert {brokers.least_busy() for _ in range(9)} == {1}, "connected, and nothing under way"
    pending += [asyncio.create_task(connections[1].send_request(HEARTBEAT, 10)) for _ in range(2)]
    await eventually(lambda: connections[1].in_flight == 2)
    assert {brokers.least_busy() for _ in range(9)} == {0}, "a busy one before one that is not connected"
    await brokers.close()
    assert all(isinstance(item, Unreachable) for item in await asyncio.gather(*pending, return_exceptions=True))


async def test_ask_any_tries_a_broker_that_just_failed_last(world: World) -> None:
    world.set_nodes(1, 2)
    brokers = world.client()
    await world.brokers[1].stop()
    with pytest.raises(Unreachable):
        await brokers.open(1)
    brokers._connections[1, ""]._not_before = asyncio.get_running_loop().time() + 60
    assert {brokers.least_busy() for _ in range(9)} == {2}
    await brokers.close()


async def test_ask_any_tries_all_brokers(world: World) -> None:
    world.set_nodes(1, 2)
    brokers = world.client()
    await world.brokers[1].stop()
    for _ in range(5):
        assert await brokers.send_request_to_any(LIST_GROUPS) == ListGroupsResponse()
    await brokers.close()


async def test_the_bootstrap_addresses_are_the_last_resort(world: World) -> None:
    """KIP-899."""
    world.set_nodes(1, 2)
    await world.brokers[1].stop()
    await world.brokers[2].stop()
    brokers = world.client()
    assert await brokers.send_request_to_any(LIST_GROUPS) == ListGroupsResponse()
    assert world.brokers[0].connections == 1
    await brokers.close()
    brokers = world.client(metadata_recovery_strategy="none")
    with pytest.raises(Unreachable) as failed:
        await brokers.send_request_to_any(LIST_GROUPS)
    assert [str(failed.value).count(f"broker {node} ") for node in (1, 2)] == [1, 1], "every address is told"
    assert world.brokers[0].connections == 1
    await brokers.close()


async def test_an_answer_may_be_refused(world: World) -> None:
    world.set_nodes(1, 2)
    brokers = world.client()
    answers = iter(["not from you", None])
    assert await brokers.send_request_to_any(LIST_GROUPS, lambda _: next(answers)) == ListGroupsResponse()
    with pytest.raises(Unreachable, match=r"broker .* said no; broker"):
        await brokers.send_request_to_any(LIST_GROUPS, lambda _: "no")
    await brokers.close()


async def test_a_bootstrap_connection_becomes_that_of_its_broker(world: World) -> None:
    brokers = world.client()
    await brokers.send_request_to_any(LIST_GROUPS)
    world.set_nodes(0, 1)
    brokers.adopt_bootstrap()
    connection = brokers.ready(0, "")
    assert connection is not None
    assert connection.peer.startswith("0 (")
    assert await brokers.open(0) is connection
    assert world.brokers[0].connections == 1
    await brokers.close()


async def test_an_unused_bootstrap_connection_is_closed(world: World) -> None:
    brokers = world.client()
    await brokers.send_request_to_any(LIST_GROUPS)
    world.set_nodes(1)
    brokers.adopt_bootstrap()
    await eventually(lambda: not world.brokers[0]._writers)
    assert world.broke == 0
    await brokers.close()


async def test_describe_failures_names_each_broker_and_its_failure(world: World) -> None:
    brokers = world.client()
    assert brokers.describe_failures() == f"broker {world.brokers[0].address} was not tried yet"
    world.set_nodes(1, 2)
    assert brokers.describe_failures() == ""
    await world.brokers[1].stop()
    with pytest.raises(Unreachable):
        await brokers.open(1)
    connection = await brokers.open(2)
    assert "connection refused" in brokers.describe_failures()
    assert "broker 2 (127.0.0.1:" in brokers.describe_failures(), "it has not answered anything yet"
    await connection.send_request(LIST_GROUPS, 10)
    assert "broker 2" not in brokers.describe_failures()
    await brokers.close()
    with pytest.raises(Unreachable, match="the client is closed"):
        await brokers.open(2)


async def test_the_newest_epoch_of_the_open_connections_has_the_features(world: World) -> None:
    for at, broker in enumerate(world.brokers):
        levels = (FinalizedFeatureKey(name="transaction.version", max_version_level=at, min_version_level=0),)
        answer = ApiVersionsResponse(
            api_keys=EVERYTHING, finalized_features_epoch=10 * at - 1, finalized_features=levels
        )
        broker.on(ApiVersionsRequest, lambda _, answer=answer: answer)
    world.set_nodes(0, 1, 2)
    brokers = world.client()
    assert brokers.finalized_feature("transaction.version") == 0
    for node, level in ((0, 0), (2, 2), (1, 2)):
        await brokers.open(node)
        assert brokers.finalized_feature("transaction.version") == level
    assert brokers.finalized_feature("group.version") == 0
    await brokers.close()
