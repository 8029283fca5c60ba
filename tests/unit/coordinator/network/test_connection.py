"""Conversations over a real socket: order, parking, muting, mistakes, limits."""

from __future__ import annotations

import asyncio
import struct
import tracemalloc
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.litter import no_litter
from tests.unit.coordinator.network.conftest import (
    API_VERSIONS,
    BIG_BYTES,
    FIND_COORDINATOR,
    HEARTBEAT,
    LIST_GROUPS,
    Serve,
    World,
    framed,
    request,
)

from rota.coordinator.network.connection import TURN_REQUESTS_MAX, Connection
from rota.coordinator.network.dispatch import HANDLERS_MAX
from rota.protocol.compiler import codec
from rota.protocol.messages.api_versions import ApiVersionsResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest


async def test_pipelined_requests_are_answered_in_order(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    for generation in range(200):
        peer.send_request(generation)
    assert [await peer.answers() for _ in range(200)] == list(range(200))


async def test_a_frame_may_arrive_byte_by_byte(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    whole = framed(struct.pack(">hhih", HEARTBEAT, 0, 7, -1) + b"\0\3now" + struct.pack(">i", 7) + b"\0\1m")
    for at in range(len(whole)):
        peer.send(whole[at : at + 1])
        await peer.writer.drain()
    assert await peer.frame() == struct.pack(">ih", 7, 0)
    assert world.calls[0].client_id == ""


async def test_a_parked_reply_holds_back_the_later_ones(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1)
    peer.send_request(2, "later")
    peer.send_request(3)
    peer.send_request(4, "later")
    peer.send_request(5)
    await world.until(lambda: len(world.requests) == 5)
    assert await peer.answers() == 1
    world.answer(4)
    world.answer(2)
    assert [await peer.answers() for _ in range(4)] == [2, 3, 4, 5]


async def test_a_muting_request_keeps_the_next_ones_from_being_served(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    peer.send_request(2)
    peer.send_request(3, "mute")
    peer.send_request(4)
    await world.until(lambda: 1 in world.delayed_reply)
    assert world.requests == [1]
    world.answer(1)
    assert world.requests == [1], "the next request is served from within the reply"
    assert [await peer.answers(), await peer.answers()] == [1, 2]
    await world.until(lambda: 3 in world.delayed_reply)
    assert world.requests == [1, 2, 3]
    world.answer(3)
    assert [await peer.answers(), await peer.answers()] == [3, 4]


@pytest.mark.parametrize("together", [True, False])
async def test_f17_a_find_coordinator_expedites_the_reply_that_it_waits_for(serve: Serve, together: bool) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    if not together:
        await world.until(lambda: 1 in world.delayed_reply)
    peer.send(request(FIND_COORDINATOR, 0, 2, b"\0\1g"))
    await world.until(lambda: world.expedited == [1])
    assert world.requests == [1], "it is still served after the reply"
    world.answer(1)
    assert await peer.answers() == 1
    await world.until(lambda: world.requests == [1, -10])


@pytest.mark.parametrize("before", [0, TURN_REQUESTS_MAX - 1])
async def test_f17_a_find_coordinator_expedites_a_reply_also_when_a_turn_does_not_reach_it(
    serve: Serve, before: int
) -> None:
    """The second reply is waited for when the FindCoordinator is queued already, beyond the requests of that turn."""
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    await world.until(lambda: 1 in world.delayed_reply)
    for _ in range(before):
        peer.send_request(0)
    peer.send_request(2, "mute")
    for _ in range(TURN_REQUESTS_MAX - before):
        peer.send_request(0)
    peer.send(request(FIND_COORDINATOR, 0, 3, b"\0\1g"))
    await world.until(lambda: world.expedited == [1])
    world.answer(1)
    await world.until(lambda: 2 in world.delayed_reply)
    await world.until(lambda: world.expedited == [1, 2])


async def test_f17_other_requests_wait_for_the_reply_as_on_kafka(serve: Serve) -> None:
    """aiokafka's tests send a Metadata behind a Fetch and measure that it waits."""
    world = await serve()
    peer = await world.peer()
    for generation in (1, 2, 3):
        peer.send_request(generation, "mute")
    peer.send(request(LIST_GROUPS, 4, 4, b"\1\0"))
    for generation in (1, 2, 3):
        await world.until(lambda generation=generation: generation in world.delayed_reply)  # type: ignore[misc]
        world.answer(generation)
    assert [await peer.answers() for _ in range(3)] == [1, 2, 3]
    await world.until(lambda: world.requests == [1, 2, 3, -1])
    assert world.expedited == []


async def test_a_request_behind_a_parked_one_that_does_not_mute_is_served(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    for generation in range(10):
        peer.send_request(generation, "later")
    await world.until(lambda: len(world.delayed_reply) == 10)
    for generation in reversed(range(10)):
        world.answer(generation)
    assert [await peer.answers() for _ in range(10)] == list(range(10))


async def test_an_answered_delayed_reply_is_sent_at_once(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "at once")
    peer.send_request(2)
    assert [await peer.answers(), await peer.answers()] == [1, 2]


async def test_a_request_without_reply_leaves_no_gap(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "never")
    peer.send_request(2, "later")
    peer.send_request(3, "never")
    peer.send_request(4)
    await world.until(lambda: 2 in world.delayed_reply)
    world.answer(2)
    assert [await peer.answers(), await peer.answers()] == [2, 4]


async def test_waiters_are_notified_when_the_peer_disconnects(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "later")
    peer.send_request(2, "mute")
    await world.until(lambda: 2 in world.delayed_reply)
    await peer.close()
    await world.until(lambda: len(world.abandoned) == 2)
    world.answer(1)  # nobody reads it, and nothing happens
    assert world.abandoned == [1, 2]


async def test_a_call_names_its_client_and_its_listener(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, client="zoë".encode())
    peer.send_request(2, client=b"other")
    assert [await peer.answers(), await peer.answers()] == [1, 2]
    first, second = world.calls
    assert (first.client_id, second.client_id) == ("zoë", "other")
    assert (first.version, first.client_host) == (4, "/127.0.0.1")
    assert (first.reached_host, first.reached_port) == ("127.0.0.1", world.port)


async def test_a_client_id_that_is_no_text_is_taken_as_kafka_takes_it(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, client=b"\xffa")
    assert await peer.answers() == 1
    assert world.calls[0].client_id == "\ufffda"


async def test_the_advertised_address_replaces_the_reached_one(serve: Serve) -> None:
    world = await serve(advertised_listeners="PLAINTEXT://broker.example:9092")
    peer = await world.peer()
    peer.send_request(1)
    assert await peer.answers() == 1
    assert (world.calls[0].reached_host, world.calls[0].reached_port) == ("broker.example", 9092)


async def test_unknown_tagged_fields_of_a_header_are_skipped(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, tags=b"\2\x05\3abc\x81\x01\0")
    assert await peer.answers() == 1


async def test_an_unknown_version_of_api_versions_is_answered_in_version_0(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send(request(API_VERSIONS, 99, 5, b"what is this?"))
    frame = await peer.frame()
    response, end = codec(ApiVersionsResponse, 0).decode(frame, 4)
    assert (frame[:4], response.error_code, end) == (struct.pack(">i", 5), 35, len(frame))
    peer.send_request(6)
    assert await peer.answers() == 6, "the connection goes on"


async def test_api_versions_has_the_old_response_header_in_every_version(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send(request(API_VERSIONS, 4, 5, b"\2a\2b\0"))
    frame = await peer.frame()
    response, end = codec(ApiVersionsResponse, 4).decode(frame, 4)
    assert (response.error_code, end) == (0, len(frame))


HEAD = struct.pack(">hhih", HEARTBEAT, 4, 1, 4) + b"test"


@pytest.mark.parametrize(
    ("garbage", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "TLS"),
        (struct.pack(">i", -1), "-1 bytes"),
        (struct.pack(">i", 2_000_000), "2000000 bytes"),
        (framed(b""), "shorter than its header"),
        (framed(HEAD[:9]), "shorter than its header"),
        (framed(HEAD), "shorter than its header"),
        (framed(HEAD + b"\0\4now"), "longer than its frame"),
        (framed(struct.pack(">hhih", HEARTBEAT, 4, 1, 500) + b"test"), "client id"),
        (framed(HEAD + b"\xff\xff\xff\xff\xff\xff"), "varint"),
        (framed(HEAD + b"\xff\xff\xff\x0f"), "tagged fields"),
        (framed(HEAD + b"\1\0\x7f"), "tagged field"),
        (request(HEARTBEAT, 5, 1, b""), "Heartbeat version 5"),
        (request(999, 0, 1, b""), "API key 999"),
        (request(-1, -1, 1, b""), "API key"),
    ],
)
async def test_invalid_bytes_close_only_their_connection(serve: Serve, garbage: bytes, reason: str) -> None:
    world = await serve(socket_request_max_bytes="1000000")
    good, bad = await world.peer(), await world.peer()
    good.send_request(1, "later")
    await world.until(lambda: 1 in world.delayed_reply)
    with capture_logs() as logs:
        bad.send(garbage)
        assert await bad.ended()
    assert [entry["event"] for entry in logs] == ["connection closed"]
    assert reason in logs[0]["reason"]
    assert logs[0]["peer"].startswith("127.0.0.1:")
    good.send_request(2)
    world.answer(1)
    assert [await good.answers(), await good.answers()] == [1, 2]


async def test_requests_before_the_garbage_are_answered(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1)
    peer.send_request(2, "later")
    peer.send(b"POST /x HTTP/1.1\r\n")
    assert await peer.answers() == 1
    await world.until(lambda: 2 in world.delayed_reply)
    world.answer(2)
    assert await peer.answers() == 2
    assert await peer.ended()


async def test_garbage_behind_a_muting_request_waits_its_turn(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    peer.send_request(2)
    peer.send(b"\xff\xff\xff\xff")
    await world.until(lambda: 1 in world.delayed_reply)
    world.answer(1)
    assert [await peer.answers(), await peer.answers()] == [1, 2]
    assert await peer.ended()


@pytest.mark.parametrize(("behaviour", "kind"), [("boom", RuntimeError), ("slip", IndexError)])
async def test_an_internal_error_closes_only_its_connection_and_logs_a_traceback(
    serve: Serve, behaviour: str, kind: type[Exception]
) -> None:
    world = await serve()
    good, bad = await world.peer(), await world.peer()
    with capture_logs() as logs:
        bad.send_request(1)
        bad.send_request(2, behaviour)
        bad.send_request(3)
        assert await bad.answers() == 1
        assert await bad.ended()
    assert [entry["event"] for entry in logs] == ["request failed", "connection closed"]
    assert isinstance(logs[0]["exc_info"], kind)
    assert world.requests == [1, 2]
    good.send_request(4)
    assert await good.answers() == 4


async def test_a_reply_that_cannot_be_written_ends_one_connection(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "later")
    await world.until(lambda: 1 in world.delayed_reply)
    with capture_logs() as logs:
        world.delayed_reply.pop(1).answer("not a response")  # type: ignore[arg-type]
        assert await peer.ended()
    assert logs[0]["event"] == "request failed"


async def test_an_exception_given_as_a_reply_is_the_one_reported(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "later")
    await world.until(lambda: 1 in world.delayed_reply)
    with capture_logs() as logs:
        world.delayed_reply.pop(1).answer(ZeroDivisionError())  # type: ignore[arg-type]
        assert await peer.ended()
    assert isinstance(logs[0]["exc_info"], ZeroDivisionError)


async def test_a_peer_that_does_not_read_is_served_no_further(serve: Serve) -> None:
    """Each reply is a megabyte; after the socket's buffers and our own mark nothing more is asked of the API."""
    world = await serve(rota_connection_write_buffer_bytes_max="100000")
    slow, quick = await world.peer(), await world.peer()
    slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
    body = b"\1\1\0"
    requests = 100
    for number in range(requests):
        slow.send(request(LIST_GROUPS, 5, number, body))
    quick.send_request(1)
    assert await quick.answers() == 1
    await _settled(world)
    assert world.requests.count(-1) < requests / 2
    slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
    sizes = [len(await slow.frame()) for _ in range(requests)]
    assert len(set(sizes)) == 1
    assert world.requests.count(-1) == requests


async def _settled(world: World) -> None:
    """Until a thousand turns of the loop change nothing."""
    before = -1
    while before != len(world.requests):
        before = len(world.requests)
        for _ in range(1000):
            await asyncio.sleep(0)


async def test_requests_under_way_are_bounded_and_go_on_below_the_bound(serve: Serve) -> None:
    world = await serve(queued_max_requests="8")
    peer = await world.peer()
    for generation in range(50):
        peer.send_request(generation, "later")
    for generation in range(50):
        await world.until(lambda at=generation: at in world.delayed_reply)  # type: ignore[misc]
        assert len(world.delayed_reply) <= 8
        world.answer(generation)
    assert [await peer.answers() for _ in range(50)] == list(range(50))


async def test_many_requests_of_one_peer_do_not_delay_the_others(serve: Serve) -> None:
    """Law N16."""
    world = await serve()
    chatty, quiet = await world.peer(), await world.peer()
    chatty.send_request(0)
    quiet.send_request(1)
    assert [await chatty.answers(), await quiet.answers()] == [0, 1]
    for generation in range(2, 5_002):
        chatty.send_request(generation)
    quiet.send_request(1)
    assert await quiet.answers() == 1
    assert world.requests.index(1, 2) < 100
    assert [await chatty.answers() for _ in range(5_000)] == list(range(2, 5_002))


@pytest.mark.parametrize("first", ["never", "throttled"])
async def test_n17_what_a_peer_has_sent_before_it_closes_is_served(serve: Serve, first: str) -> None:
    """A producer with acks=0 waits for no reply before it closes."""
    world = await serve()
    peer = await world.peer()
    for generation in range(1_000):
        peer.send_request(generation, "never" if generation else first)
    await peer.close()
    await world.until(lambda: bool(world.requests))
    world.timers.fire()
    await world.until(lambda: not len(world.connections))
    assert world.requests == list(range(1_000))


@pytest.mark.parametrize("stops", [None, Connection.abort, Connection.finish])
async def test_n17_what_is_queued_at_the_end_of_a_peer_is_served_in_turns_until_the_broker_stops(
    serve: Serve, stops: Callable[[Connection], None] | None
) -> None:
    """Over TLS the end comes with the last requests, and from many peers without `eof_received`."""
    world = await serve()
    peer = await world.peer()
    peer.send_request(0)
    await peer.answers()
    (connection,) = world.connections
    frame = codec(HeartbeatRequest, 4).encode(HeartbeatRequest(group_id="later", generation_id=1, member_id="m"))
    connection.data_received(request(HEARTBEAT, 4, 1, frame) * 100)
    assert connection._transport is not None
    connection._transport.abort()
    await world.until(lambda: connection._transport is None)
    assert not connection.is_closing, "N14: it makes room for another"
    if stops is not None:
        stops(connection)
    served = len(world.requests)
    await world.until(lambda: not len(world.connections))
    assert len(world.requests) == (101 if stops is None else served)
    assert served <= 1 + 4 * TURN_REQUESTS_MAX


@pytest.mark.parametrize("stops", [None, Connection.abort, Connection.finish])
async def test_n17_what_a_throttled_peer_has_sent_is_served_when_that_is_over(
    serve: Serve, stops: Callable[[Connection], None] | None
) -> None:
    """Over TLS its end is read meanwhile."""
    world = await serve()
    peer = await world.peer()
    peer.send_request(0)
    await peer.answers()
    (connection,) = world.connections
    connection.mute_for(1_000)
    frame = codec(HeartbeatRequest, 4).encode(HeartbeatRequest(group_id="later", generation_id=1, member_id="m"))
    connection.data_received(request(HEARTBEAT, 4, 1, frame) * 100)
    assert connection._transport is not None
    connection._transport.abort()
    await world.until(lambda: connection._transport is None)
    if stops is not None:
        stops(connection)
    world.now_ms += 1_000 if stops is None else 0
    world.timers.fire()
    await world.until(lambda: not len(world.connections))
    assert len(world.requests) == (101 if stops is None else 1)


async def test_n17_what_a_peer_has_sent_behind_a_reply_that_waits_is_served(serve: Serve) -> None:
    """As by Kafka, after that reply; one that waits for the peer alone, as that to a Fetch, is given up."""
    world = await serve()
    peer = await world.peer()
    for generation in range(100):
        peer.send_request(generation, "never" if generation % 10 else "join" if generation == 50 else "mute")
    await world.until(lambda: 0 in world.delayed_reply)
    await peer.close()
    await world.until(lambda: 50 in world.delayed_reply)
    assert world.requests == list(range(51))
    world.answer(50)
    await world.until(lambda: not len(world.connections))
    assert world.requests == list(range(100))
    assert world.abandoned == [number for number in range(0, 100, 10) if number != 50]


async def test_n14_a_peer_that_has_gone_makes_room_once(serve: Serve) -> None:
    """It may wait for a reply for minutes."""
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "join")
    peer.send_request(2)
    await world.until(lambda: 1 in world.delayed_reply)
    await peer.close()
    (connection,) = world.connections
    await world.until(lambda: connection._transport is None)
    assert not connection.is_closing
    connection.refuse("there are too many connections, and a broker has to connect")
    assert connection.is_closing
    await world.until(lambda: not len(world.connections))
    assert world.requests == [1]


async def test_n17_so_is_what_is_behind_a_reply_that_is_given_at_once(serve: Serve) -> None:
    """It would have held back the next requests, had it not been given."""
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    await world.until(lambda: 1 in world.delayed_reply)
    (connection,) = world.connections
    for generation, group in ((2, "later"), (3, "at once"), (4, "never")):
        frame = HeartbeatRequest(group_id=group, generation_id=generation, member_id="m")
        connection.data_received(request(HEARTBEAT, 4, 1, codec(HeartbeatRequest, 4).encode(frame)))
    await peer.close()
    await world.until(lambda: not len(world.connections))
    assert world.requests == [1, 2, 3, 4]


async def test_n17_a_fetch_of_a_peer_that_has_closed_is_not_served(serve: Serve) -> None:
    """Nobody would get what it reads, and it waits for no memory."""
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    peer.send_fetch()
    peer.send_request(2, "never")
    await world.until(lambda: 1 in world.delayed_reply)
    await peer.close()
    await world.until(lambda: not len(world.connections))
    assert world.requests == [1, 2]


async def test_n17_so_is_what_is_behind_the_most_replies_that_may_wait(serve: Serve) -> None:
    """Over TLS: else the end is read when they have been sent."""
    world = await serve(**{"queued.max.requests": "2"})
    await world.peer()
    await world.until(lambda: bool(len(world.connections)))
    (connection,) = world.connections
    frame = codec(HeartbeatRequest, 4).encode(HeartbeatRequest(group_id="later", generation_id=1, member_id="m"))
    connection.data_received(request(HEARTBEAT, 4, 1, frame) * 100)
    assert connection._transport is not None
    connection._transport.abort()
    await world.until(lambda: not len(world.connections))
    assert len(world.requests) == 100


async def test_n17_a_stop_does_not_wait_for_a_reply_to_a_throttled_peer_that_has_closed(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "later")
    await world.until(lambda: 1 in world.delayed_reply)
    (connection,) = world.connections
    connection.mute_for(1_000)
    peer.send_request(2)
    await world.until(lambda: bool(connection._backlog))
    assert connection._transport is not None
    connection._transport.abort()
    await world.until(lambda: connection._transport is None)
    connection.finish()
    await world.until(lambda: not len(world.connections))
    assert world.requests == [1]


async def test_waiting_requests_keep_their_order_through_every_pause(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    for generation in range(2_000):
        peer.send_request(generation, "mute" if generation % 100 == 50 else "now")
    for generation in range(50, 2_000, 100):
        await world.until(lambda at=generation: at in world.delayed_reply)  # type: ignore[misc]
        assert world.requests == list(range(generation + 1))
        world.answer(generation)
    assert [await peer.answers() for _ in range(2_000)] == list(range(2_000))


async def test_bytes_under_way_are_bounded(serve: Serve) -> None:
    world = await serve(rota_connection_inflight_bytes_max="1")
    peer = await world.peer()
    peer.send_request(1, "later")
    peer.send_request(2)
    await world.until(lambda: 1 in world.delayed_reply)
    await _settled(world)
    assert world.requests == [1]
    world.answer(1)
    assert [await peer.answers(), await peer.answers()] == [1, 2]


async def test_replies_behind_one_that_is_not_known_are_bounded(serve: Serve) -> None:
    world = await serve(rota_connection_inflight_bytes_max=str(4 * BIG_BYTES))
    peer = await world.peer()
    peer.send_request(1, "later")
    for correlation_id in range(2, 52):
        peer.send(request(LIST_GROUPS, 5, correlation_id, b"\1\1\0"))
    await world.until(lambda: 1 in world.delayed_reply)
    await _settled(world)
    assert world.connections.request_memory.held_bytes < 6 * BIG_BYTES
    world.answer(1)
    assert await peer.answers() == 1
    assert [(await peer.frame())[:4] for _ in range(2, 52)] == [
        correlation_id.to_bytes(4, "big") for correlation_id in range(2, 52)
    ]


async def test_unsupported_versions_do_not_fill_the_handler_table(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    for version in range(5, 3_000):
        peer.send(framed(struct.pack(">hhih", API_VERSIONS, version, version, -1)))
    for version in range(5, 3_000):
        assert (await peer.frame())[:4] == version.to_bytes(4, "big")
    (connection,) = world.connections._open
    assert len(connection._handlers) <= HANDLERS_MAX


async def test_a_muted_connection_reads_only_a_little_ahead(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    await world.until(lambda: 1 in world.delayed_reply)
    for generation in range(2, 60_000):
        peer.send_request(generation, "now")
    await _settled(world)
    assert world.connections.request_memory.held_bytes < 1_000_000
    world.answer(1)
    assert [await peer.answers() for _ in range(59_999)] == list(range(1, 60_000))


async def test_announced_frames_that_never_arrive_hold_no_memory(serve: Serve) -> None:
    world = await serve(rota_inflight_bytes_max="300000")
    for _ in range(10):
        (await world.peer()).send(struct.pack(">i", 90_000_000) + b"x")
    await world.until(lambda: len(world.connections) == 10)
    good = await world.peer()
    good.send(request(HEARTBEAT, 4, 1, codec_padding(200_000)))
    assert await good.answers() == 1


async def test_a_large_frame_waits_for_room_and_small_ones_do_not(serve: Serve) -> None:
    world = await serve(rota_inflight_bytes_max="100000")
    first, second = await world.peer(), await world.peer()
    large = request(HEARTBEAT, 4, 1, codec_padding(2_000_000))
    first.send(large[:-1])
    await world.until(lambda: world.connections.request_memory.held_bytes > 2_000_000)
    second.send(large[:-1])
    await _settled(world)
    held = world.connections.request_memory.held_bytes
    assert held < 3_500_000, "the second large frame was read on"
    third = await world.peer()
    third.send_request(3)
    assert await third.answers() == 3
    first.send(large[-1:])
    assert await first.answers() == 1
    second.send(large[-1:])
    assert await second.answers() == 1


def codec_padding(size: int) -> bytes:
    """A Heartbeat v4 with an unknown tagged field of that many bytes."""
    plain = b"\4now" + struct.pack(">i", 1) + b"\2m\0"
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21])
    return plain + b"\1\x09" + length + bytes(size)


async def test_requests_leave_no_litter(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    with no_litter():
        for generation in range(0, 30, 3):
            peer.send_request(generation, "later")
            peer.send_request(generation + 1, "mute")
            await world.until(lambda number=generation: number + 1 in world.delayed_reply)
            peer.send_request(generation + 2)
            world.answer(generation + 1)
            world.answer(generation)
            assert [await peer.answers() for _ in range(3)] == [generation, generation + 1, generation + 2]


async def test_a_throttled_client_gets_its_reply_and_its_next_request_is_served_after_that_time(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(500, "throttled")
    assert await peer.answers() == 500
    peer.send_request(2)
    other = await world.peer()
    other.send_request(3)
    assert await other.answers() == 3
    assert world.requests == [500, 3]
    world.now_ms += 499
    world.timers.fire()
    other.send_request(4)
    assert await other.answers() == 4
    assert world.requests == [500, 3, 4]
    world.now_ms += 1
    world.timers.fire()
    assert await peer.answers() == 2


async def test_a_shorter_throttle_does_not_end_a_longer_one(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(500, "throttled")
    await peer.answers()
    (mute,) = {call.mute for call in world.calls}
    assert mute is not None
    mute(100)
    peer.send_request(2)
    world.now_ms += 100
    world.timers.fire()
    other = await world.peer()
    other.send_request(3)
    assert await other.answers() == 3
    assert world.requests == [500, 3]


async def test_the_timer_of_a_throttled_connection_ends_with_it(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    before = len(world.timers)
    peer.send_request(500, "throttled")
    await peer.answers()
    (call,) = world.calls
    assert call.mute is not None
    await peer.close()
    await world.until(lambda: not len(world.connections))
    call.mute(500)
    world.now_ms += 500
    world.timers.fire()
    assert len(world.timers) <= before


async def test_a_connection_without_requests_takes_little_memory(serve: Serve) -> None:
    """With a dict for its attributes and a queue for requests that wait it would be 3.5 KB."""
    world = await serve()
    tracemalloc.start()
    try:
        kept = [Connection(world.connections) for _ in range(100)]
        taken_bytes = tracemalloc.get_traced_memory()[0] / len(kept)
    finally:
        tracemalloc.stop()
    assert 1_000 < taken_bytes < 1_700


async def test_a_connection_whose_requests_wait_no_more_has_no_queue(serve: Serve) -> None:
    world = await serve()
    peer = await world.peer()
    peer.send_request(1, "mute")
    await world.until(lambda: 1 in world.delayed_reply)
    peer.send_request(2)
    (connection,) = world.connections
    await world.until(lambda: connection._backlog is not None)
    world.answer(1)
    assert [await peer.answers(), await peer.answers()] == [1, 2]
    assert connection._backlog is None
