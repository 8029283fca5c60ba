import asyncio
import logging
import socket
from contextlib import suppress

import pytest
from tests.unit.client.network.scripted import CLOSE, EVERYTHING, Scripted, eventually, framed

from rota.client.config import ClientConfig
from rota.client.errors import AuthenticationFailed, Unreachable
from rota.client.network.broker_connection import BrokerConnection, Idle
from rota.client.network.metadata import BrokerInfo
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.produce import ProduceRequest
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def link(port: int, broken: list[BrokerConnection] | None = None, **settings: int) -> BrokerConnection:
    config = ClientConfig(bootstrap_servers="127.0.0.1:1", **settings)  # type: ignore[arg-type]
    return BrokerConnection(config, BrokerInfo(7, "127.0.0.1", port), (broken if broken is not None else []).append)


async def test_concurrent_opens_share_one_connection() -> None:
    async with Scripted() as broker:
        item = link(broker.port)
        connections = await asyncio.gather(*(item.open() for _ in range(5)))
        assert len(set(map(id, connections))) == broker.connections == 1
        assert await item.open() is connections[0]
        assert item.is_open
        await item.close("over")
        assert not item.is_open


async def test_cancelling_one_open_does_not_cancel_the_connection() -> None:
    async with Scripted() as broker:
        item = link(broker.port)
        waiting = [asyncio.create_task(item.open()) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        assert (await waiting[1]).is_open
        assert broker.connections == 1
        await item.close("over")


async def test_a_failed_connection_fails_all_callers_and_backs_off() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        item = link(bound.getsockname()[1], reconnect_backoff_ms=100, reconnect_backoff_max_ms=400)
        loop = asyncio.get_running_loop()
        failures = await asyncio.gather(item.open(), item.open(), return_exceptions=True)
        assert [type(failure) for failure in failures] == [Unreachable] * 2
        assert failures[0] is not failures[1]
        until = item._not_before
        with pytest.raises(Unreachable, match="connection refused"):
            await item.open()
        assert loop.time() >= until, "it waited for the end of the rest"
        await item.close("over")


async def test_an_unexpected_exception_becomes_unreachable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the system's")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", broken)
    item = link(1)
    with pytest.raises(Unreachable, match="ZeroDivisionError: the system's"):
        await item.open()
    assert item.is_backing_off
    assert "connecting to a broker failed unexpectedly" in caplog.text
    await item.close("over")


async def test_a_broker_that_answers_and_hangs_up_is_a_failure() -> None:
    async with Scripted() as broker:
        broker.on(ApiVersionsRequest, lambda _: _hung_up(broker))
        item = link(broker.port, reconnect_backoff_ms=60_000)
        with suppress(Unreachable):
            await item.open()
        await eventually(lambda: item.is_backing_off)
        await item.close("over")


async def _hung_up(broker: Scripted) -> object:
    for writer in broker._writers:
        writer.write(framed(broker.headers[-1], ApiVersionsResponse(api_keys=EVERYTHING)))
        await writer.drain()
    return CLOSE


async def test_a_lost_connection_is_dialled_again() -> None:
    async with Scripted() as broker:
        broken: list[BrokerConnection] = []
        item = link(broker.port, broken, reconnect_backoff_ms=1)
        first = await item.open()
        broker.drop()
        await eventually(lambda: broken)
        assert not item.is_open
        second = await item.open()
        assert second is not first
        assert broker.connections == 2
        await item.close("over")
        assert broken == [item], "closing is no failure"


async def test_an_idle_connection_is_closed_and_that_is_no_failure() -> None:
    async with Scripted() as broker:
        broken: list[BrokerConnection] = []
        item = link(broker.port, broken, connections_max_idle_ms=30)
        connection = await item.open()
        await eventually(lambda: not item.is_open)
        assert isinstance(connection.failure, Idle)
        assert (broken, item.is_backing_off) == ([], False)
        assert (await item.open()).is_open
        await item.close("over")


async def test_a_connection_that_waits_for_an_answer_is_not_idle() -> None:
    gate = asyncio.Event()

    async def slow(_: object) -> HeartbeatResponse:
        await gate.wait()
        return HeartbeatResponse()

    async with Scripted() as broker:
        broker.on(HeartbeatRequest, slow)
        item = link(broker.port, connections_max_idle_ms=300)
        connection = await item.open()
        loop = asyncio.get_running_loop()
        pending = asyncio.create_task(connection.send_request(HEARTBEAT, 10))
        begun = loop.time()
        await eventually(lambda: loop.time() > begun + 0.6)
        assert connection.is_open
        gate.set()
        assert await pending == HeartbeatResponse()
        await eventually(lambda: not connection.is_open)
        await item.close("over")


async def test_a_connection_that_sends_requests_without_a_response_is_not_idle() -> None:
    async with Scripted() as broker:
        broker.on(ProduceRequest, lambda _: None)
        item = link(broker.port)
        connection = await item.open()
        used_at = connection.used_at
        await connection.send_without_response(ProduceRequest(acks=0, timeout_ms=1), 10)
        item._check_idle(connection, used_at)
        assert connection.is_open
        await item.close("over")


async def test_never_idle() -> None:
    async with Scripted() as broker:
        item = link(broker.port, connections_max_idle_ms=-1)
        await item.open()
        assert item._idle is None
        await item.close("over")


async def test_closing_fails_a_pending_open() -> None:
    async with Scripted() as broker:
        broker.on(ApiVersionsRequest, lambda _: None)
        item = link(broker.port)
        waiting = asyncio.create_task(item.open())
        await eventually(lambda: broker.requests)
        await item.close("the client was closed")
        with pytest.raises(Unreachable, match="the client was closed"):
            await waiting
        with pytest.raises(Unreachable, match=r"broker 7 \(127.0.0.1:\d+\) was closed for good"):
            await item.open()


async def test_closing_fails_a_pending_request() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: None)
        item = link(broker.port)
        pending = asyncio.create_task((await item.open()).send_request(HEARTBEAT, 10))
        await eventually(lambda: item.in_flight)
        await item.close("the client was closed")
        with pytest.raises(Unreachable, match="the client was closed"):
            await pending


async def test_the_first_failure_is_a_warning_and_the_next_ones_are_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "rota.client")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        item = link(bound.getsockname()[1], reconnect_backoff_ms=0, reconnect_backoff_max_ms=0)
        for _ in range(3):
            with pytest.raises(Unreachable):
                await item.open()
        await item.close("over")
    levels = [record.levelname for record in caplog.records if record.name == "rota.client.network"]
    assert levels == ["WARNING", "DEBUG", "DEBUG"]


async def test_a_broker_that_requires_sasl_says_so_at_the_second_attempt() -> None:
    """Such a broker hangs up at the first request after ApiVersions, without a word."""
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: CLOSE)
        broker.on(SaslHandshakeRequest, lambda _: SaslHandshakeResponse(error_code=33, mechanisms=("PLAIN", "X")))
        item = link(broker.port, reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)
        with pytest.raises(Unreachable, match="closed the connection"):
            await (await item.open()).send_request(HEARTBEAT, 10)
        with pytest.raises(AuthenticationFailed, match=r"requires SASL \(PLAIN, X\): set security_protocol"):
            await item.open()
        assert not item.is_open
        await item.close("over")


async def test_closing_in_the_question_about_sasl_leaves_no_socket_open() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: CLOSE)
        broker.on(SaslHandshakeRequest, lambda _: None)  # never answered
        item = link(broker.port, reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)
        with pytest.raises(Unreachable, match="closed the connection"):
            await (await item.open()).send_request(HEARTBEAT, 10)
        waiting = asyncio.create_task(item.open())
        await eventually(lambda: broker.counted()[SaslHandshakeRequest] == 1)
        await item.close("over")
        with pytest.raises(Unreachable, match="over"):
            await waiting
        await eventually(lambda: not broker._writers)


async def test_a_broker_that_hangs_up_for_another_reason_is_used_again() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: CLOSE)
        item = link(broker.port, reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)
        with pytest.raises(Unreachable, match="closed the connection"):
            await (await item.open()).send_request(HEARTBEAT, 10)
        broker.on(HeartbeatRequest, lambda _: HeartbeatResponse())
        await (await item.open()).send_request(HEARTBEAT, 10)
        assert broker.counted()[SaslHandshakeRequest] == 1
        await item.close("over")
