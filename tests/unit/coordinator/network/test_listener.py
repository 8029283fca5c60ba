"""The sockets of the listeners, and what they import."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import subprocess
import sys

import pytest
from tests.unit.coordinator.network.conftest import Serve

from rota.coordinator.config.listeners import Endpoint, parse_endpoint
from rota.coordinator.network.listener import CannotListen, listen, open_sockets


async def test_port_0_finds_a_free_port(serve: Serve) -> None:
    world = await serve()
    assert world.port > 0
    peer = await world.peer()
    peer.send_request(1)
    assert await peer.answers() == 1


async def test_each_listener_returns_its_own_advertised_address(serve: Serve) -> None:
    world = await serve(
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        advertised_listeners="OUTSIDE://outside.example:1",
    )
    server = world.listener._servers[1]
    inside, outside = await world.peer(), await world.peer()
    await outside.close()
    world.port = server.sockets[0].getsockname()[1]
    outside = await world.peer()
    inside.send_request(1)
    outside.send_request(2)
    assert [await inside.answers(), await outside.answers()] == [1, 2]
    assert [call.reached_host for call in world.calls] == ["127.0.0.1", "outside.example"]


@pytest.mark.parametrize(
    ("host", "advertised"),
    [("localhost", "localhost"), ("0.0.0.0", "127.0.0.1"), ("0", "127.0.0.1"), ("", "127.0.0.1")],
)
async def test_a_listener_advertises_its_host_and_one_on_every_interface_the_address_used(
    serve: Serve, host: str, advertised: str
) -> None:
    """Law EP1. The certificate of a TLS listener is for the name of its host."""
    world = await serve(listeners=f"PLAINTEXT://{host}:0", rota_allow_plaintext_beyond_loopback="true")
    peer = await world.peer()
    peer.send_request(1)
    await peer.answers()
    assert [(call.reached_host, call.reached_port) for call in world.calls] == [(advertised, world.port)]


def test_a_port_in_use_is_reported_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"PLAINTEXT://127.0.0.1:{port}.*in use"):
            open_sockets(Endpoint("PLAINTEXT", "127.0.0.1", port))


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_n15_listeners_of_one_port_are_refused(host: str) -> None:
    """uvloop reports no failed `listen`: the second one would serve nobody, and its clients would get the first one."""
    sockets = open_sockets(Endpoint("PLAINTEXT", "127.0.0.1", 0))
    other = Endpoint("OTHER", host, sockets[0].getsockname()[1])
    sockets += open_sockets(other)  # as a process does that starts at the same moment
    try:
        listen(Endpoint("PLAINTEXT", "127.0.0.1", 0), sockets[:1])
        with pytest.raises(CannotListen, match=f"{other}.*in use"):
            listen(other, sockets[1:])
    finally:
        for bound in sockets:
            bound.close()


async def test_n15_a_start_with_two_listeners_of_one_port_fails(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CannotListen, match=f"B://127.0.0.1:{port}.*in use"):
        await serve(
            listeners=f"A://127.0.0.1:{port},B://127.0.0.1:{port}",
            listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        )


def test_an_unknown_host_is_reported() -> None:
    with pytest.raises(CannotListen, match="host is not known"):
        open_sockets(Endpoint("PLAINTEXT", "no.such.host.invalid", 0))


@pytest.mark.parametrize("text", ["PLAINTEXT://localhost:0", "PLAINTEXT://:0"])
def test_all_addresses_of_a_host_share_one_port(text: str) -> None:
    sockets = open_sockets(parse_endpoint(text))
    for listening in sockets:
        listening.listen()
    (port,) = {listening.getsockname()[1] for listening in sockets}
    with socket.create_connection(("127.0.0.1", port)):
        pass
    for listening in sockets:
        listening.close()


async def test_one_address_that_fails_opens_none(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen):
            await serve(
                listeners=f"A://127.0.0.1:0,B://127.0.0.1:{port}",
                listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
            )


async def test_a_stop_lets_requests_under_way_finish_and_begins_none(serve: Serve) -> None:
    world = await serve()
    waits, idles = await world.peer(), await world.peer()
    waits.send_request(1, "mute")
    waits.send_request(2)
    await world.until(lambda: 1 in world.delayed_reply and len(world.connections) == 2)
    stop = asyncio.ensure_future(world.listener.stop(60_000))
    assert await idles.ended()
    with pytest.raises(OSError, match=r"."):
        await world.peer()
    world.answer(1)
    assert await waits.answers() == 1
    assert await waits.ended()
    assert await stop == 0
    assert world.requests == [1]


async def test_connections_are_refused_while_the_listener_closes(serve: Serve) -> None:
    world = await serve()
    world.connections.finish(lambda: None)
    late = await world.peer()
    assert await late.ended()


async def test_n9_a_connection_that_was_being_accepted_during_an_abort_is_closed(serve: Serve) -> None:
    """The event loop reports an accepted connection some turns later, when the others are closed already."""
    world = await serve()
    world.connections.abort()
    late = await world.peer()
    late.send_request(1)
    async with asyncio.timeout(20):
        assert await late.ended()
    assert world.requests == []


@pytest.mark.parametrize("turns", range(4))
async def test_n9_a_connection_that_is_being_accepted_during_a_stop_is_closed(serve: Serve, turns: int) -> None:
    """asyncio loses it in one of these turns of the loop; its open socket would be a ResourceWarning later."""
    world = await serve()
    with socket.create_connection(("127.0.0.1", world.port), timeout=20) as peer:
        for _ in range(turns):
            await asyncio.sleep(0)
        await world.listener.stop(0)
        gc.collect()
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.to_thread(peer.recv, 1) == b""


async def test_connections_left_after_the_drain_time_are_aborted(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "later")
    await world.until(lambda: 1 in world.delayed_reply)
    assert await world.listener.stop(0) == 1
    assert await peer.ended()
    assert world.abandoned == [1]


async def test_a_stop_without_peers_is_done_at_once(serve: Serve) -> None:
    world = await serve()
    assert await world.listener.stop(60_000) == 0


PLAIN_BROKER = """
import asyncio, sys
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
async def main():
    async with Broker(BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"}), memory=True):
        words = "rota.coordinator.security.", "sasl", "tls", "scram", "jwt", "cryptography"
        print(*sorted(name for name in sys.modules if any(word in name for word in words)))
asyncio.run(main())
"""


def test_a_broker_without_tls_sasl_and_acls_imports_nothing_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN_BROKER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["rota.coordinator.security.principal"]


async def test_n11_a_small_reply_does_not_wait_for_the_acknowledgement_of_the_one_before(serve: Serve) -> None:
    """asyncio sets TCP_NODELAY only on sockets that are made for TCP by name; uvloop does on all."""
    world = await serve(listeners="PLAINTEXT://127.0.0.1:0")
    peer = await world.peer()
    peer.send_request(1)
    assert await peer.answers() == 1
    (connection,) = world.connections
    assert connection._transport is not None
    accepted = connection._transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
