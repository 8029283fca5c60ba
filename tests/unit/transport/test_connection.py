"""Against brokers that misbehave in every way that a socket allows."""

import asyncio
import socket
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from tests.unit.client.network.scripted import CLOSE, Scripted, eventually, framed

from rota.client.errors import TimedOut, Unreachable, Unsupported
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rota.transport.connection import THROTTLE_SECONDS_MAX, Connection
from rota.transport.handshake import connect

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
ANSWER = HeartbeatResponse(error_code=27)
SECONDS = 10.0


async def dialled(broker: Scripted, ended: Callable[[Connection], None] = lambda _: None) -> Connection:
    return await connect(
        "127.0.0.1", broker.port, "7 (scripted)", "me", setup_seconds=SECONDS, request_seconds=SECONDS, ended=ended
    )


async def closed(connection: Connection) -> None:
    connection.end(Unreachable("the test is over"))
    await connection.closed()


def big_produce(size: int) -> ProduceRequest:
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=bytes(size)),))
    return ProduceRequest(acks=0, timeout_ms=1, topic_data=(data,))


async def test_a_request_returns_its_response() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: ANSWER)
        connection = await dialled(broker)
        assert await connection.send_request(HEARTBEAT, SECONDS) == ANSWER
        assert broker.requests[-1] == HEARTBEAT
        assert broker.headers[-1].client_id == "me"
        assert (connection.is_open, connection.in_flight) == (True, 0)
        await closed(connection)


async def test_tcp_keepalive_is_enabled() -> None:
    async with Scripted() as broker:
        connection = await dialled(broker)
        assert connection._transport is not None
        plug = connection._transport.get_extra_info("socket")
        assert plug.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        await closed(connection)


async def test_requests_are_sent_in_order_and_matched_to_their_responses() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda request: HeartbeatResponse(error_code=request.generation_id))
        connection = await dialled(broker)
        requests = [HeartbeatRequest(group_id="g", generation_id=n, member_id="m") for n in range(300)]
        answers = await asyncio.gather(*(connection.send_request(item, SECONDS) for item in requests))
        assert [item.error_code for item in answers] == list(range(300))
        assert broker.requests[1:] == requests
        await closed(connection)


async def test_the_version_is_the_newest_that_both_know_and_the_caller_wants() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: ANSWER)
        connection = await dialled(broker)
        await connection.send_request(HEARTBEAT, SECONDS)
        await connection.send_request(HEARTBEAT, SECONDS, 0, 2)
        assert [item.api_version for item in broker.headers[1:]] == [4, 2]
        assert connection.version(12) == 4
        with pytest.raises(Unsupported, match="broker 7"):
            await connection.send_request(HEARTBEAT, SECONDS, 5)
        await closed(connection)


async def test_a_request_timeout_fails_all_pending_requests() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: None)
        connection = await dialled(broker)
        patient = asyncio.create_task(connection.send_request(HEARTBEAT, SECONDS))
        with pytest.raises(TimedOut, match=r"7 \(scripted\) did not answer within 50 ms \(request_timeout_ms\)"):
            await connection.send_request(HEARTBEAT, 0.05)
        with pytest.raises(TimedOut):
            await patient
        assert not connection.is_open
        with pytest.raises(TimedOut):
            await connection.send_request(HEARTBEAT, SECONDS)
        await connection.closed()


async def test_the_timeout_of_a_cancelled_request_closes_the_connection() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: None)
        connection = await dialled(broker)
        pending = asyncio.create_task(connection.send_request(HEARTBEAT, 0.05))
        await eventually(lambda: connection.in_flight)
        pending.cancel()
        await eventually(lambda: not connection.is_open)
        await connection.closed()
        assert isinstance(connection.failure, TimedOut)


async def test_each_request_has_its_own_deadline() -> None:
    """The second would be late when the first's timer were all there is."""
    gate = asyncio.Event()

    async def slow(_: Any) -> HeartbeatResponse:
        await gate.wait()
        return ANSWER

    async with Scripted() as broker:
        broker.on(HeartbeatRequest, slow)
        connection = await dialled(broker)
        first = asyncio.create_task(connection.send_request(HEARTBEAT, 0.3))
        second = asyncio.create_task(connection.send_request(HEARTBEAT, SECONDS))
        gate.set()
        assert await first == await second == ANSWER
        await eventually(lambda: asyncio.get_running_loop().time() > connection.used_at + 0.31)
        assert connection.is_open
        assert await connection.send_request(HEARTBEAT, SECONDS) == ANSWER
        await closed(connection)


async def test_cancelling_one_request_does_not_affect_the_others() -> None:
    gate = asyncio.Event()

    async def slow(request: HeartbeatRequest) -> HeartbeatResponse:
        await gate.wait()
        return HeartbeatResponse(error_code=request.generation_id)

    async with Scripted() as broker:
        broker.on(HeartbeatRequest, slow)
        connection = await dialled(broker)
        requests = [HeartbeatRequest(group_id="g", generation_id=n, member_id="m") for n in range(5)]
        pending = [asyncio.create_task(connection.send_request(item, SECONDS)) for item in requests]
        await eventually(lambda: connection.in_flight == 5)
        for cancelled in (0, 2, 4):
            pending[cancelled].cancel()
        gate.set()
        answers = await asyncio.gather(*pending, return_exceptions=True)
        assert [type(item) is asyncio.CancelledError for item in answers] == [True, False, True, False, True]
        assert [answers[item].error_code for item in (1, 3)] == [1, 3]  # type: ignore[union-attr]
        assert (await connection.send_request(requests[4], SECONDS)).error_code == 4
        await closed(connection)


async def test_pending_requests_fail_when_the_broker_closes_the_connection() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: None)
        ended: list[Connection] = []
        connection = await dialled(broker, ended.append)
        pending = [asyncio.create_task(connection.send_request(HEARTBEAT, SECONDS)) for _ in range(3)]
        await eventually(lambda: len(broker.requests) == 4)
        broker.drop()
        failures = await asyncio.gather(*pending, return_exceptions=True)
        assert [type(item) for item in failures] == [Unreachable] * 3
        assert len({id(item) for item in failures}) == 3, "each has a traceback of its own"
        assert "7 (scripted) closed the connection" in str(failures[0])
        assert ended == [connection]
        await connection.closed()


def spoilt(wrong: Callable[[bytes], Any]) -> Callable[[Scripted], Callable[[Any], Any]]:
    return lambda broker: lambda _: wrong(framed(broker.headers[-1], ANSWER))


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (spoilt(lambda _: CLOSE), "closed the connection"),
        (spoilt(lambda frame: frame[:4] + bytes([frame[4] ^ 64]) + frame[5:]), "was next"),
        (spoilt(lambda frame: b"\x7f\xff\xff\xff" + frame), "an answer of 2147483647 bytes"),
        (spoilt(lambda frame: b"\xff\xff\xff\xff" + frame), "an answer of -1 bytes"),
        (spoilt(lambda frame: (6).to_bytes(4, "big") + frame[4:10]), "cannot be read"),
        (spoilt(lambda frame: (4).to_bytes(4, "big") + frame[4:8]), "cannot be read"),
        (spoilt(lambda frame: frame[:8] + b"\xff" * (len(frame) - 8)), "cannot be read"),
        (spoilt(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"), "an HTTP server"),
    ],
    ids=["closed", "another correlation id", "too long", "negative", "cut", "empty", "garbage", "http"],
)
async def test_nonsense_ends_the_connection(answer: Any, reply: str) -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, answer(broker))
        connection = await dialled(broker)
        with pytest.raises(Unreachable, match=reply):
            await connection.send_request(HEARTBEAT, SECONDS)
        await connection.closed()
        with pytest.raises(Unreachable, match=reply):
            await connection.send_request(HEARTBEAT, SECONDS)


async def test_a_connection_closed_inside_a_response_fails_the_request() -> None:
    async with Scripted() as broker:

        async def half(_: Any) -> object:
            for writer in broker._writers:
                writer.write(framed(broker.headers[-1], ANSWER)[:9])
                await writer.drain()
            return CLOSE

        broker.on(HeartbeatRequest, half)
        connection = await dialled(broker)
        with pytest.raises(Unreachable, match="closed the connection"):
            await connection.send_request(HEARTBEAT, SECONDS)
        await connection.closed()


async def test_an_answer_in_single_bytes_is_an_answer() -> None:
    async with Scripted() as broker:

        async def drip(_: Any) -> None:
            for byte in framed(broker.headers[-1], ANSWER):
                for writer in broker._writers:
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0)

        broker.on(HeartbeatRequest, drip)
        connection = await dialled(broker)
        assert await connection.send_request(HEARTBEAT, SECONDS) == ANSWER
        await closed(connection)


async def test_answers_out_of_order_end_the_connection() -> None:
    async with Scripted() as broker:

        def swapped(_: Any) -> bytes | None:
            if len(broker.requests) < 3:
                return None
            return framed(broker.headers[2], ANSWER) + framed(broker.headers[1], ANSWER)

        broker.on(HeartbeatRequest, swapped)
        connection = await dialled(broker)
        pending = [connection.send_request(HEARTBEAT, SECONDS) for _ in range(2)]
        failures = await asyncio.gather(*pending, return_exceptions=True)
        assert ["was next" in str(item) for item in failures] == [True, True]
        await connection.closed()


async def test_an_unexpected_response_closes_the_connection() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: framed(broker.headers[-1], ANSWER) * 2)
        connection = await dialled(broker)
        await connection.send_request(HEARTBEAT, SECONDS)
        await eventually(lambda: not connection.is_open)
        assert "without a request" in str(connection.failure)
        await connection.closed()


async def test_large_requests_wait_for_room_and_keep_their_order() -> None:
    """A broker that does not read: what is written without an answer waits; an ask behind it stays behind it."""
    gate = asyncio.Event()

    async def slow(_: Any) -> None:
        await gate.wait()

    async with Scripted() as broker:
        broker.on(ProduceRequest, slow)
        broker.on(HeartbeatRequest, lambda _: ANSWER)
        connection = await dialled(broker)
        blocked = [
            asyncio.create_task(connection.send_without_response(big_produce(2 << 20), SECONDS)) for _ in range(16)
        ]
        await eventually(lambda: connection._writable is not None)
        pending = asyncio.create_task(connection.send_request(HEARTBEAT, SECONDS))
        await eventually(lambda: connection.in_flight)
        assert not all(task.done() for task in blocked)
        gate.set()
        assert await pending == ANSWER
        await asyncio.gather(*blocked)
        assert [type(item) for item in broker.requests[1:]] == [ProduceRequest] * 16 + [HeartbeatRequest]
        await closed(connection)


async def test_a_writer_blocked_by_back_pressure_fails_when_the_connection_closes() -> None:
    gate = asyncio.Event()

    async def never(_: Any) -> None:
        await gate.wait()

    async with Scripted() as broker:
        broker.on(ProduceRequest, never)
        connection = await dialled(broker)
        blocked = [
            asyncio.create_task(connection.send_without_response(big_produce(2 << 20), SECONDS)) for _ in range(16)
        ]
        await eventually(lambda: connection._writable is not None)
        pending = asyncio.create_task(connection.send_request(HEARTBEAT, SECONDS))
        await eventually(lambda: connection.in_flight)
        connection.end(Unreachable("enough"))
        failures = await asyncio.gather(*blocked, pending, return_exceptions=True)
        assert isinstance(failures[-1], Unreachable)
        assert [str(item) for item in failures if item is not None][-2:] == ["enough", "enough"]
        gate.set()
        await connection.closed()


async def written_without_response(connection: Connection) -> int:
    """Write until the socket and the transport are full; return how many requests were reported as written."""
    for number in count():
        writing = asyncio.create_task(connection.send_without_response(big_produce(20_000), SECONDS))
        await asyncio.wait([writing], timeout=0.05)
        if not writing.done():
            writing.cancel()
            await asyncio.wait([writing])
            return number
    raise AssertionError


async def test_nc1_a_broker_that_takes_no_request_is_left_when_the_time_is_over() -> None:
    """With acks=0 there is no response to wait for: only that the request leaves."""
    gate = asyncio.Event()

    async def never(_: Any) -> None:
        await gate.wait()

    async with Scripted() as broker:
        broker.on(ProduceRequest, never)
        connection = await dialled(broker)
        await written_without_response(connection)
        try:
            with pytest.raises(TimedOut, match="did not take a request within 20 ms"):
                async with asyncio.timeout(1):
                    await connection.send_without_response(big_produce(20_000), 0.02)
            assert not connection.is_open
        finally:
            gate.set()


async def test_nc13_what_has_no_response_is_sent_before_the_end_of_the_connection() -> None:
    """Nobody is told that it is lost."""
    gate = asyncio.Event()

    async def slow(_: Any) -> None:
        await gate.wait()

    async with Scripted() as broker:
        broker.on(ProduceRequest, slow)
        connection = await dialled(broker)
        written = await written_without_response(connection)
        connection.end(Unreachable("the producer is closed"), linger_seconds=SECONDS)
        gate.set()
        await connection.closed()
        await eventually(lambda: len(broker.requests) > written)


async def test_nc13_a_response_that_comes_meanwhile_drops_nothing() -> None:
    """TLS still reads while it sends what is left."""
    gate = asyncio.Event()

    async def slow(_: Any) -> None:
        await gate.wait()

    async with Scripted() as broker:
        broker.on(ProduceRequest, slow)
        connection = await dialled(broker)
        written = await written_without_response(connection)
        connection.end(Unreachable("the producer is closed"), linger_seconds=SECONDS)
        connection.data_received(framed(broker.headers[0], ANSWER, version=4))
        gate.set()
        await connection.closed()
        await eventually(lambda: len(broker.requests) > written)


async def test_nc13_a_broker_that_reads_nothing_does_not_hold_up_the_end() -> None:
    gate = asyncio.Event()

    async def never(_: Any) -> None:
        await gate.wait()

    async with Scripted() as broker:
        broker.on(ProduceRequest, never)
        connection = await dialled(broker)
        await written_without_response(connection)
        connection.end(Unreachable("the producer is closed"), linger_seconds=0.01)
        async with asyncio.timeout(SECONDS):
            await connection.closed()
        gate.set()


async def test_a_broker_that_wants_to_be_left_alone_is() -> None:
    """KIP-219: what is asked meanwhile goes out later, in order, and has its time from then on."""
    async with Scripted() as broker:
        loop = asyncio.get_running_loop()
        received_at: list[float] = []

        def throttled(request: HeartbeatRequest) -> HeartbeatResponse:
            received_at.append(loop.time())
            return HeartbeatResponse(throttle_time_ms=400 if request.generation_id == 0 else 0)

        broker.on(HeartbeatRequest, throttled)
        connection = await dialled(broker)
        requests = [HeartbeatRequest(group_id="g", generation_id=n, member_id="m") for n in range(4)]
        await connection.send_request(requests[0], SECONDS)
        await asyncio.gather(*(connection.send_request(item, 0.39) for item in requests[1:]))
        assert broker.requests[1:] == requests
        assert received_at[1] >= connection._throttled_until
        await closed(connection)


async def test_the_throttle_time_is_limited() -> None:
    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda _: HeartbeatResponse(throttle_time_ms=2**31 - 1))
        connection = await dialled(broker)
        await connection.send_request(HEARTBEAT, SECONDS)
        assert 0 < connection._throttled_until - asyncio.get_running_loop().time() <= THROTTLE_SECONDS_MAX
        await closed(connection)


async def test_a_megabyte_of_answer_is_read_whole() -> None:
    groups = tuple(ListedGroup(group_id=f"group-{n}", protocol_type="consumer") for n in range(50_000))
    async with Scripted() as broker:
        broker.on(ListGroupsRequest, lambda _: ListGroupsResponse(groups=groups))
        connection = await dialled(broker)
        assert (await connection.send_request(ListGroupsRequest(), SECONDS)).groups == groups
        await closed(connection)


async def test_tags_of_the_future_in_a_header_are_skipped() -> None:
    def tagged(_: Any) -> bytes:
        header = broker.headers[-1]
        plain = framed(header, ANSWER)
        body = plain[4:8] + b"\x01\x63\x02hi" + plain[9:]
        return len(body).to_bytes(4, "big") + body

    async with Scripted() as broker:
        broker.on(HeartbeatRequest, tagged)
        connection = await dialled(broker)
        assert await connection.send_request(HEARTBEAT, SECONDS) == ANSWER
        await closed(connection)
