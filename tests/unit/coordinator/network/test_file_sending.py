"""F18: replies with parts of files, over a real socket, on both loops."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.network.conftest import FETCH, FETCH_BODY, Peer, Serve, World, request

from rota.coordinator.log.file_part import FilePart
from rota.coordinator.log.files import FileSystem
from rota.coordinator.log.store import OpenFiles
from rota.coordinator.network.file_sending import BUFFERS_MAX
from rota.coordinator.network.owner import CORK
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.compiler import codec
from rota.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

pytestmark = pytest.mark.skipif(CORK is None, reason="parts of files are sent on Linux")
FILE_BYTES, MEBIBYTE = 3 << 20, 1 << 20
CONTENT = Random(1).randbytes(FILE_BYTES)
SEND_BYTES = 200 * 1024  # a few packets of the loopback


class CountedFiles(FileSystem):
    """The real files; counts what is sent from them and what is read."""

    __slots__ = ("read_bytes", "sent_bytes")

    def __init__(self) -> None:
        self.read_bytes = self.sent_bytes = 0

    def sendfile(self, socket_fd: int, fd: int, count: int, position: int) -> int:
        sent = super().sendfile(socket_fd, fd, count, position)
        self.sent_bytes += sent
        return sent

    def pread(self, fd: int, count: int, position: int) -> bytes:
        data = super().pread(fd, count, position)
        self.read_bytes += len(data)
        return data


class Segment:
    """One file, and parts of it."""

    def __init__(self, path: Path) -> None:
        self.content = CONTENT
        self.system = CountedFiles()
        self.files, self._fd = OpenFiles(system=self.system), os.open(path, os.O_RDONLY)

    def part(self, size_bytes: int = MEBIBYTE, position: int = 0) -> FilePart:
        return FilePart(self.files, self._fd, size_bytes, position)

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with CONTENT."""
    path = tmp_path_factory.mktemp("segment") / "file"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def segment(content: Path) -> Iterator[Segment]:
    segment = Segment(content)
    yield segment
    assert segment.files.parts == 0
    segment.close()


def response(*records: bytes | memoryview | FilePart) -> FetchResponse:
    """A response with one partition for each."""
    data = tuple(
        PartitionData(partition_index=index, high_watermark=index, records=cast(bytes, each))
        for index, each in enumerate(records)
    )
    return FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=data),))


def frame(correlation_id: int, *records: bytes | memoryview) -> bytes:
    """What the peer gets, without the length."""
    return struct.pack(">ib", correlation_id, 0) + codec(FetchResponse, 12).encode(response(*records))


def narrow(world: World) -> None:
    """Let the sockets take few bytes at once."""
    for connection in world.connections:
        assert connection._transport is not None
        connection._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)


async def narrow_peer(world: World) -> Peer:
    peer = await world.peer()
    await world.until(lambda: len(world.connections) > 0)
    narrow(world)
    return peer


async def test_a_part_is_sent_between_the_bytes_around_it(serve: Serve, segment: Segment) -> None:
    world = await serve()
    peer = await world.peer()
    small, large = b"small", memoryview(Random(2).randbytes(70_000))
    world.fetched = [response(small, segment.part(), large, segment.part(5_000, 77), b"")]
    peer.send_fetch(7)
    content = segment.content
    assert await peer.frame() == frame(7, small, content[:MEBIBYTE], large, content[77:5_077], b"")
    assert world.calls[0].sends_files
    assert segment.system.sent_bytes > 0


async def test_a_peer_that_reads_gets_a_part_without_a_copy(serve: Serve, segment: Segment) -> None:
    world = await serve()
    peer = await world.peer()
    world.fetched = [response(segment.part(100_000))]
    peer.send_fetch(7)
    assert await peer.frame() == frame(7, segment.content[:100_000])
    assert (segment.system.sent_bytes, segment.system.read_bytes) == (100_000, 0)
    (connection,) = world.connections
    assert connection._transport is not None
    connected = connection._transport.get_extra_info("socket")
    assert connected.getsockopt(socket.IPPROTO_TCP, CORK) == 0, "N11: the last packet waits for no other one"


async def test_what_the_socket_does_not_take_follows_in_order(serve: Serve, segment: Segment) -> None:
    world = await serve()
    peer = await narrow_peer(world)
    world.fetched = [response(segment.part(position=at), b"behind it") for at in (0, 5_000, 9_999)]
    for correlation_id in range(3):
        peer.send_fetch(correlation_id)
    peer.send_request(3)
    for correlation_id, at in enumerate((0, 5_000, 9_999)):
        await asyncio.sleep(0)
        assert await peer.frame() == frame(correlation_id, segment.content[at : at + MEBIBYTE], b"behind it")
    assert await peer.answers() == 3
    assert segment.system.sent_bytes > 0
    assert segment.system.read_bytes > MEBIBYTE
    assert segment.system.sent_bytes + segment.system.read_bytes == 3 * MEBIBYTE


@pytest.mark.parametrize("seed", range(2))
async def test_generated_replies_have_the_bytes_that_they_have_from_memory(
    serve: Serve, segment: Segment, seed: int
) -> None:
    random, world = Random(seed), await serve()
    peer = await narrow_peer(world)
    expected = []
    for correlation_id in range(12):
        records, plain = _generated(random, segment)
        world.fetched.append(response(*records))
        expected.append(frame(correlation_id, *plain))
        peer.send_fetch(correlation_id)
        if random.random() < 0.5:
            await asyncio.sleep(0)
    for correlation_id, each in enumerate(expected):
        assert await peer.frame() == each, correlation_id
    assert segment.system.sent_bytes > 0
    assert segment.system.read_bytes > 0


def _generated(random: Random, segment: Segment) -> tuple[Sequence[Any], Sequence[bytes]]:
    """Records of a reply: parts of the file, bytes in memory, and the bytes of all of them."""
    records: list[Any] = []
    plain: list[bytes] = []
    for _ in range(random.choice((1, 3, 3, BUFFERS_MAX))):
        size, at = random.choice((0, 1, 500, 3_000, 3_000, 3_000, 30_000)), random.randrange(MEBIBYTE)
        plain.append(segment.content[at : at + size])
        is_part = size > 3_000 or (size > 1_024 and random.random() < 0.1)
        records.append(segment.part(size, at) if is_part else plain[-1])
    records.append(segment.part(500_000))
    plain.append(segment.content[:500_000])
    return records, plain


async def test_a_reply_that_waits_for_an_earlier_one_keeps_no_file_open(serve: Serve, segment: Segment) -> None:
    world = await serve()
    peer = await world.peer()
    world.fetched = [response(segment.part())]
    peer.send_request(1, "later")
    peer.send_fetch(2)
    await world.until(lambda: len(world.requests) == 2)
    assert segment.files.parts == 0
    assert world.connections.request_memory.held_bytes > MEBIBYTE
    world.answer(1)
    assert await peer.answers() == 1
    assert await peer.frame() == frame(2, segment.content[:MEBIBYTE])


async def test_a_reply_from_a_file_that_was_cut_ends_its_connection(serve: Serve, tmp_path: Path) -> None:
    world, path = await serve(), tmp_path / "cut"
    path.write_bytes(CONTENT[:1_000])
    segment = Segment(path)
    good, bad = await world.peer(), await world.peer()
    world.fetched = [response(segment.part())]
    with capture_logs() as logs:
        bad.send_fetch()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await bad.frame()
    assert [line["event"] for line in logs] == ["connection closed"]
    assert "truncated" in logs[0]["reason"]
    segment.close()
    good.send_request(1)
    assert await good.answers() == 1


@pytest.mark.parametrize("is_reset", [True, False])
async def test_a_peer_that_is_gone_ends_its_connection_silently(serve: Serve, segment: Segment, is_reset: bool) -> None:
    world = await serve()
    delayed: DelayedReply[FetchResponse] = DelayedReply()
    world.fetched = [delayed]
    peer = socket.create_connection(("127.0.0.1", world.port))
    peer.sendall(request(FETCH, 12, 1, FETCH_BODY))
    await world.until(lambda: not world.fetched)
    if is_reset:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with capture_logs() as logs:
        peer.close()
        delayed.answer(response(segment.part(position=7), b"", segment.part()))  # before the loop has seen the end
        await world.until(lambda: len(world.connections) == 0)
    assert logs == []


async def test_a_peer_that_does_not_read_holds_memory_until_it_is_closed(serve: Serve, segment: Segment) -> None:
    """N5 counts what was not sent; the fixture sees that nothing stays counted."""
    world = await serve(rota_connection_write_buffer_bytes_max="1000")
    peer = await narrow_peer(world)
    peer.writer.transport.pause_reading()
    world.fetched = [response(segment.part(FILE_BYTES))]
    peer.send_fetch()
    await world.until(lambda: segment.system.read_bytes > 0)
    memory = world.connections.request_memory
    await world.until(lambda: 0 < memory.held_bytes <= segment.system.read_bytes + 1_000)


@pytest.mark.parametrize("why", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
async def test_where_a_file_system_has_no_sendfile_records_are_read(
    serve: Serve, segment: Segment, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    def refuse(system: CountedFiles, socket_fd: int, fd: int, count: int, position: int) -> int:
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(CountedFiles, "sendfile", refuse)
    world = await serve()
    peer = await world.peer()
    world.fetched = [response(b"before", segment.part(), b"behind")]
    peer.send_fetch(7)
    assert await peer.frame() == frame(7, b"before", segment.content[:MEBIBYTE], b"behind")


async def test_a_waiting_reply_from_a_file_that_was_cut_gives_no_memory_back_twice(
    serve: Serve, tmp_path: Path
) -> None:
    """The reply before it is ready, and is sent at the end of the tick."""
    world, path = await serve(), tmp_path / "cut"
    path.write_bytes(CONTENT[:1_000])
    segment, delayed = Segment(path), DelayedReply[FetchResponse]()
    peer = await world.peer()
    world.fetched = [delayed]
    peer.send_request(1, "later")
    peer.send_fetch(2)
    await world.until(lambda: len(world.requests) == 2)
    with capture_logs() as logs:
        world.answer(1)
        delayed.answer(response(segment.part()))
        assert await peer.ended()
    assert [line["event"] for line in logs] == ["connection closed"]
    segment.close()
