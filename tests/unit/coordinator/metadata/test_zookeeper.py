"""What needs no ZooKeeper; the rest is in tests/contract."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from kazoo.exceptions import BadVersionError, NoAuthError, RolledBackError, RuntimeInconsistency

from rota.coordinator.metadata.store import BadNode, BadVersion, Check, Create, Delete, NodeExists, Set, StoreFailed
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


async def test_the_first_connection_has_its_own_timeout() -> None:
    store = ZooKeeperStore("127.0.0.1:9", session_timeout_ms=60_000, connection_timeout_ms=200)
    async with asyncio.timeout(20):
        with pytest.raises(StoreFailed, match=r"no connection to .*127\.0\.0\.1:9 for 200 ms: is it running"):
            await store.open()
