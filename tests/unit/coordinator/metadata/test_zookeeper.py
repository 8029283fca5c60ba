"""What needs no ZooKeeper; the rest is in tests/contract."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import subprocess
import sys
from collections.abc import Mapping
from typing import ClassVar

import pytest
from kazoo.exceptions import BadVersionError, NoAuthError, RolledBackError, RuntimeInconsistency
from kazoo.protocol.serialization import stat_struct

from rota.coordinator.metadata.store import (
    BadNode,
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    OutcomeUnknown,
    Set,
    StoreFailed,
    Watch,
)
from rota.coordinator.metadata.zookeeper import ZooKeeperStore, _check, _refuse, parse_connect


@pytest.mark.parametrize(
    ("connect", "hosts", "root"),
    [
        ("localhost:2181", "localhost:2181", ""),
        ("a:1,b-2.example:2/kafka", "a:1,b-2.example:2", "/kafka"),
        (" a:1/x/y/ ", "a:1", "/x/y"),
        ("a/", "a", ""),
        ("[::1]:2181/x", "[::1]:2181", "/x"),
    ],
)
def test_zookeeper_connect_has_hosts_and_a_chroot(connect: str, hosts: str, root: str) -> None:
    assert parse_connect(connect) == (hosts, root)


@pytest.mark.parametrize(
    "connect", ["", "/x", "a:b", "a:1,,b:2", "a b:1", "a:99999", "a:1/x//y", "a:1/..", "a:1/" + "x" * 200]
)
def test_a_malformed_zookeeper_connect_is_refused(connect: str) -> None:
    with pytest.raises(ValueError, match=r"zookeeper\.connect"):
        parse_connect(connect)


def test_invalid_operations_are_refused_before_they_reach_zookeeper() -> None:
    for refused, op in [
        (BadNode, Create("/\ud800")),
        (BadNode, Delete("/")),
        (NodeExists, Create("/")),
        (BadNode, Set("a", b"")),
        (BadNode, Check("/a//b", 0)),
    ]:
        with pytest.raises(refused):
            _check(op)


def test_the_refused_operation_of_a_commit_is_named() -> None:
    ops = [Create("/a"), Set("/b", b"", 3), Delete("/c")]
    with pytest.raises(BadVersion) as refused:
        _refuse(ops, [RolledBackError(), BadVersionError(), RuntimeInconsistency()])
    assert refused.value.path == "/b"
    with pytest.raises(StoreFailed, match="ACL of /a"):
        _refuse(ops, [NoAuthError(), RuntimeInconsistency(), RuntimeInconsistency()])
    with pytest.raises(StoreFailed, match="without a reason"):
        _refuse(ops, [RolledBackError(), RuntimeInconsistency(), RuntimeInconsistency()])
    _refuse(ops, ["/a", object(), True])


async def test_a_store_that_was_not_opened_can_be_closed() -> None:
    store = ZooKeeperStore("localhost:1")
    await store.close()
    with pytest.raises(StoreFailed, match="closed"):
        await store.get("/")


async def test_opening_fails_without_a_zookeeper() -> None:
    store = ZooKeeperStore("127.0.0.1:9", session_timeout_ms=300)
    with pytest.raises(StoreFailed, match="for 300 ms"):
        await store.open()


def test_a_broker_without_zookeeper_does_not_import_kazoo() -> None:
    code = "import sys, rota.coordinator.broker; sys.exit('kazoo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class ScriptedZooKeeper:
    """A server with one node, which has no data (null). Like those before ZooKeeper 3.6 it may not know multiRead."""

    STAT = stat_struct.pack(1, 2, 3, 4, 5, 6, 7, 0, 3, 0, 8)
    NODE = struct.pack(">i", -1) + STAT
    ANSWERS: ClassVar = {3: STAT, 4: NODE, 22: b"\0\0\0\4\0\0\0\0\0" + NODE + struct.pack(">i?i", -1, True, -1)}

    def __init__(self, *, knows_multi_read: bool = True, answers: Mapping[int, bytes] | None = None) -> None:
        self._knows_multi_read, self.answers = knows_multi_read, {**self.ANSWERS, **(answers or {})}
        self.error, self.session_ms, self.has_answered, self.is_silent = 0, 4_000, False, False

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self.address

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def send(body: bytes) -> None:
            writer.write(struct.pack(">i", len(body)) + body)

        with contextlib.suppress(asyncio.IncompleteReadError, OSError), contextlib.closing(writer):
            await _frame(reader)
            send(struct.pack(">iiqi", 0, self.session_ms, 77, 16) + bytes(17))
            while True:
                xid, kind = struct.unpack_from(">ii", await _frame(reader))
                if kind == 22 and not self._knows_multi_read:
                    send(struct.pack(">iqi", xid, 1, -6))
                    return
                if not self.is_silent:
                    send(struct.pack(">iqi", xid, 1, self.error) + self.answers.get(kind, b""))
                    self.has_answered = True


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


async def test_a_server_that_does_not_know_multi_read_is_refused_at_the_start() -> None:
    async with ScriptedZooKeeper(knows_multi_read=False) as address:
        with pytest.raises(StoreFailed, match=r"ZooKeeper is older than 3\.6"):
            await ZooKeeperStore(address, session_timeout_ms=4_000).open()


async def test_a_node_without_data_is_empty() -> None:
    """What `create /a` of zkCli makes."""
    async with ScriptedZooKeeper() as address:
        store = await ZooKeeperStore(address, session_timeout_ms=4_000).open()
        assert (await store.get("/a"))[0] == b""
        for watch in (None, lambda _: None):
            ((data, stat),) = await store.get_many(["/a"], watch)
            assert (data, stat.changed) == (b"", 2)
        await store.close()


MULTI_READ, MULTI = 22, 14
END = struct.pack(">i?i", -1, True, -1)


@pytest.mark.parametrize("watch", [None, lambda _: None])
@pytest.mark.parametrize(
    "answer", [b"", END, b"\0\0\0\4\0\0\0\0\0\0\0\0\1", b"\xff\xff\xff\xff\0\0\0\0\7\0\0\0\7" + END]
)
async def test_who_reads_gets_an_error_for_an_answer_that_cannot_be_read(answer: bytes, watch: Watch | None) -> None:
    """S13."""
    server = ScriptedZooKeeper()
    async with server as address, asyncio.timeout(10):
        store = await ZooKeeperStore(address, session_timeout_ms=4_000).open()
        server.answers[MULTI_READ] = answer
        with pytest.raises(StoreFailed, match=r"cannot be read|SystemZookeeperError"):
            await store.get_many(["/a"], watch)
        server.answers[MULTI_READ] = server.ANSWERS[MULTI_READ]
        assert [data for data, _ in await store.get_many(["/a"], watch)] == [b""]
        await store.close()


async def test_an_error_that_is_not_known_is_the_answer() -> None:
    """S13. To a read and to a change."""
    server = ScriptedZooKeeper()
    async with server as address, asyncio.timeout(10):
        store = await ZooKeeperStore(address, session_timeout_ms=4_000).open()
        server.error = -999
        for call in (store.get("/a"), store.get_many(["/a"]), store.set("/a", b"")):
            with pytest.raises(StoreFailed):
                await call
        await store.close()


async def test_the_outcome_of_a_change_is_unknown_when_its_answer_cannot_be_read() -> None:
    """S13."""
    async with ScriptedZooKeeper(answers={MULTI: b"\0"}) as address, asyncio.timeout(10):
        store = await ZooKeeperStore(address, session_timeout_ms=4_000).open()
        with pytest.raises(OutcomeUnknown, match="cannot be read"):
            await store.set("/a", b"1")
        await store.close()


async def test_the_first_connection_has_its_own_timeout() -> None:
    store = ZooKeeperStore("127.0.0.1:9", session_timeout_ms=60_000, connection_timeout_ms=200)
    async with asyncio.timeout(20):
        with pytest.raises(StoreFailed, match=r"no connection to .*127\.0\.0\.1:9 for 200 ms: is it running"):
            await store.open()


async def test_a_server_that_falls_silent_is_left_for_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """S18. Without an end of the connection kazoo waits for two thirds of a session."""
    monkeypatch.setattr("rota.coordinator.metadata.silence.SILENCE_S_MAX", 0.05)
    first, second = servers = ScriptedZooKeeper(), ScriptedZooKeeper()
    for server in servers:
        server.session_ms = 60_000
    async with first as one, second as other, asyncio.timeout(10):
        store = await ZooKeeperStore(f"{one},{other}", session_timeout_ms=60_000).open()
        session_id = store.session_id
        silent, left = (first, second) if first.has_answered else (second, first)
        silent.is_silent, left.has_answered = True, False
        assert (await store.get("/a"))[0] == b""
        assert (left.has_answered, store.session_id) == (True, session_id)
        await store.close()
