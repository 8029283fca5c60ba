"""How many peers there may be, and for how long they may be silent."""

from __future__ import annotations

import asyncio
import socket

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.network.conftest import BIG_BYTES, LIST_GROUPS, Serve, request
from tests.unit.coordinator.network.test_open_files import open_files

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network.call import Route
from rota.coordinator.network.connection import PEER_NOT_READING, Connection
from rota.coordinator.network.connections import SWEEP_MS_MAX, SWEEP_MS_MIN, Connections, sweep_interval_ms
from rota.coordinator.network.dispatch import ApiHandler
from rota.protocol.compiler import codec
from rota.protocol.header import request_header
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def test_a_connection_above_the_limit_is_closed_and_the_others_go_on(serve: Serve) -> None:
    world = await serve(max_connections="2")
    first, second = await world.peer(), await world.peer()
    await world.until(lambda: len(world.connections) == 2)
    with capture_logs() as logs:
        third = await world.peer()
        assert await third.ended()
    assert "max.connections (2)" in logs[0]["reason"]
    first.send_request(1)
    second.send_request(2)
    assert [await first.answers(), await second.answers()] == [1, 2]
    await first.close()
    await world.until(lambda: len(world.connections) == 1)
    fourth = await world.peer()
    fourth.send_request(4)
    assert await fourth.answers() == 4


async def test_n13_connections_leave_open_files_to_the_logs(serve: Serve) -> None:
    with open_files(200):
        world = await serve()
    peers = [await world.peer() for _ in range(150)]
    await world.until(lambda: len(world.connections) == 150)
    with capture_logs() as logs:
        assert await (await world.peer()).ended()
    assert logs[0]["reason"] == "the limit on open files allows 150 connections: raise `ulimit -n`"
    peers[-1].send_request(1)
    assert await peers[-1].answers() == 1


async def test_n13_a_log_that_is_new_takes_the_place_of_a_connection(serve: Serve) -> None:
    with open_files(200):
        world = await serve()
    world.connections.log_files = lambda: 98
    await world.peer(), await world.peer()
    await world.until(lambda: len(world.connections) == 2)
    world.connections.log_files = lambda: 148
    with capture_logs() as logs:
        peers = [await world.peer() for _ in range(49)]
        assert await peers[-1].ended()
    assert logs[0]["reason"] == "the limit on open files allows 50 connections: raise `ulimit -n`"


@pytest.mark.parametrize(("listener", "allowed"), [("", 768), ("127.0.0.1:0", 640)])
def test_n13_the_console_has_open_files_of_its_own(listener: str, allowed: int) -> None:
    class Node:
        config = BrokerConfig({"rota.http.listener": listener})

    with open_files(1024):
        connections = Connections(Node(), {}, lambda call: call())
    assert connections._files_max == allowed


@pytest.mark.parametrize("has_spoken", [True, False])
async def test_clients_cannot_shut_brokers_out(has_spoken: bool, serve: Serve) -> None:
    """N14. Of the clients the one is closed that was silent since the last sweep, or always."""
    listeners = "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0"
    protocols = "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT"
    world = await serve(max_connections="2", listeners=listeners, listener_security_protocol_map=protocols)
    broker, world.port = world.port, world.bound[1].port
    first, second = await world.peer(), await world.peer()
    await world.until(lambda: len(world.connections) == 2)
    if has_spoken:
        second.send_request(2)
        assert await second.answers() == 2
        world.connections.sweep(world.now_ms, 1_000)
    first.send_request(1)
    assert await first.answers() == 1
    world.port = broker
    third = await world.peer()
    third.send_request(3)
    assert (await third.answers(), await second.ended()) == (3, True)
    fourth = await world.peer()
    fourth.send_request(4)
    assert (await fourth.answers(), await first.ended()) == (4, True)
    assert await (await world.peer()).ended()  # for a third broker there is nobody else to close
    assert world.connections.refused_count == 3


TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0",
    "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
}


async def test_n14_each_of_several_brokers_that_connect_at_once_replaces_a_client(serve: Serve) -> None:
    world = await serve(max_connections="2", **TWO_LISTENERS)
    broker, world.port = world.port, world.bound[1].port
    clients = [await world.peer(), await world.peer()]
    await world.until(lambda: len(world.connections) == 2)
    world.port = broker
    sockets = [socket.create_connection(("127.0.0.1", broker)) for _ in clients]  # accepted in one turn of the loop
    assert [await client.ended() for client in clients] == [True, True]
    await world.until(lambda: len(world.connections) == 2)
    assert {connection.listener for connection in world.connections} == {"PLAINTEXT"}
    for each in sockets:
        each.close()


async def test_n14_a_connection_that_is_refused_anyway_replaces_nobody(serve: Serve) -> None:
    world = await serve(max_connections="1", max_connections_per_ip_overrides="127.0.0.2:0", **TWO_LISTENERS)
    broker, world.port = world.port, world.bound[1].port
    client = await world.peer()
    client.send_request(1)
    assert await client.answers() == 1
    _, writer = await asyncio.open_connection("127.0.0.1", broker, local_addr=("127.0.0.2", 0))
    await world.until(lambda: world.connections.refused_count == 1)
    client.send_request(2)
    assert await client.answers() == 2
    writer.close()


async def test_n14_a_connection_above_the_rate_of_its_address_replaces_nobody(serve: Serve) -> None:
    world = await serve(max_connections="1", **TWO_LISTENERS)
    broker, world.port = world.port, world.bound[1].port
    client = await world.peer()
    client.send_request(1)
    assert await client.answers() == 1
    world.port, world.connections.delay_ms = broker, {"127.0.0.1": 700}.__getitem__
    assert await (await world.peer()).ended()
    client.send_request(2)
    assert await client.answers() == 2


async def test_the_time_of_the_last_connection_is_known(serve: Serve) -> None:
    world = await serve()
    for now_ms in (5, 9):
        world.now_ms, opened = now_ms, world.connections.opened_count
        await world.peer()
        await world.until(lambda opened=opened: world.connections.opened_count > opened)  # type: ignore[misc]
        assert world.connections.node.connected_ms == now_ms


async def test_connections_per_ip_are_limited(serve: Serve) -> None:
    world = await serve(max_connections_per_ip="1")
    first, second = await world.peer(), await world.peer()
    assert await second.ended()
    first.send_request(1)
    assert await first.answers() == 1


async def test_a_connection_above_the_rate_of_its_address_is_held_and_closed(serve: Serve) -> None:
    world = await serve()
    first = await world.peer()
    first.send_request(1)
    assert await first.answers() == 1
    world.connections.delay_ms = {"127.0.0.1": 700}.__getitem__
    held = await world.peer()
    held.send_request(2)
    await world.until(lambda: world.connections.refused_count == 1)
    world.now_ms += 699
    world.timers.fire()
    first.send_request(3)
    assert await first.answers() == 3
    assert len(world.connections) == 2
    world.now_ms += 1
    world.timers.fire()
    assert await held.ended()
    assert world.requests == [1, 3]


async def test_requests_of_open_connections_are_measured_as_soon_as_a_quota_asks_for_it(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1)
    await peer.answers()
    served: list[str] = []

    def measured(handler: ApiHandler) -> ApiHandler:
        served.append(handler.name)
        return handler

    for expected in (1, 1):
        world.connections.measure(measured)
        peer.send_request(2)
        await peer.answers()
        assert len(served) == expected
    world.connections.measure(None)
    peer.send_request(3)
    await peer.answers()
    assert served == ["Heartbeat"]


async def test_single_addresses_may_have_another_limit(serve: Serve) -> None:
    world = await serve(max_connections_per_ip="1", max_connections_per_ip_overrides="10.0.0.1:7,127.0.0.1:2")
    first, second, third = await world.peer(), await world.peer(), await world.peer()
    assert await third.ended()
    first.send_request(1)
    second.send_request(2)
    assert [await first.answers(), await second.answers()] == [1, 2]


async def test_a_silent_connection_is_closed_and_one_that_speaks_is_not(serve: Serve) -> None:
    world = await serve(connections_max_idle_ms="1000")
    silent, active = await world.peer(), await world.peer()
    await world.until(lambda: len(world.connections) == 2)
    assert world.connections.sweep(0, 1000) == 0
    assert world.connections.sweep(900, 1000) == 0
    active.send_request(1)
    assert await active.answers() == 1
    assert world.connections.sweep(1000, 1000) == 1
    assert await silent.ended()
    assert world.connections.sweep(1999, 1000) == 0
    assert world.connections.sweep(2000, 1000) == 1
    assert await active.ended()


async def test_a_request_under_way_is_no_idleness(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    await world.until(lambda: 1 in world.delayed_reply)
    assert [world.connections.sweep(now_ms, 1000) for now_ms in (0, 10_000)] == [0, 0]
    world.answer(1)
    assert await peer.answers() == 1
    assert [world.connections.sweep(now_ms, 1000) for now_ms in (10_999, 11_000)] == [0, 1]


async def test_a_peer_that_never_reads_is_idle_even_with_requests_under_way(serve: Serve) -> None:
    world = await serve(rota_connection_write_buffer_bytes_max="1000")
    peer = await world.peer()
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
    peer.send_request(1, "later")
    for number in range(20):
        peer.send(request(LIST_GROUPS, 5, number, b"\1\1\0"))
    peer.send_request(2, "later")
    await world.until(lambda: 1 in world.delayed_reply)
    world.answer(1)
    (connection,) = world.connections._open
    await world.until(lambda: bool(connection._mute_reasons & PEER_NOT_READING))
    assert world.connections.sweep(0, 1) == 0
    assert BIG_BYTES * world.requests.count(-1) > 1000
    await world.until(lambda: world.connections.sweep(1000, 1000) == 1)


async def test_the_listener_looks_for_idle_connections_by_itself(serve: Serve) -> None:
    world = await serve(connections_max_idle_ms="1000")
    peer = await world.peer()
    await world.until(lambda: len(world.connections) == 1)
    for _ in range(12):
        world.now_ms += 100
        world.timers.fire()
    assert await peer.ended()


@pytest.mark.parametrize(("idle_ms", "look_ms"), [(600_000, 60_000), (1000, SWEEP_MS_MIN), (10**9, SWEEP_MS_MAX)])
def test_looks_are_a_fraction_of_the_idle_time(idle_ms: int, look_ms: int) -> None:
    assert sweep_interval_ms(idle_ms) == look_ms


@pytest.mark.parametrize(("listener", "requests"), [("", 0), ("127.0.0.1:0", 1)])
def test_latency_is_measured_only_where_it_can_be_read(listener: str, requests: int) -> None:
    """OB1. A broker without rota.http.listener reads no clock for its requests."""

    class Node:
        config = BrokerConfig({"rota.http.listener": listener})

    route = Route(12, "Heartbeat", range(5), 4, HeartbeatRequest, HeartbeatResponse, lambda *_: HeartbeatResponse())
    connections = Connections(Node(), {12: route}, lambda call: call())
    connection = Connection(connections)
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frame = request_header(12, 4, 1, "c") + codec(HeartbeatRequest, 4).encode(heartbeat)
    connection.data_received(len(frame).to_bytes(4, "big") + frame)
    assert connections.api_counters["Heartbeat"].requests == requests
