"""The failure detector on real sockets of 127.0.0.1."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import uvloop
from tests.unit.coordinator.membership.test_datagrams import SECRET

from rota.coordinator.membership.contract import Address, Alive, Change, Dead, Send, Suspected, SwimSettings
from rota.coordinator.membership.datagrams import Status
from rota.coordinator.membership.service import RESOLVING_MAX, SwimService
from rota.coordinator.scheduling.clock import Clock

DEADLINE_S = 30.0
FAST = SwimSettings(interval_ms=40, ping_timeout_ms=30, suspicion_timeout_ms=100)


class Broker:
    """A detector and what it reported."""

    def __init__(self, node_id: int, settings: SwimSettings = FAST, **options: Any) -> None:
        self.changes: list[Change] = []
        self.service = SwimService(
            node_id, settings, SECRET, self.changes.append, Clock().now_ms, random=Random(node_id), **options
        )
        self.node_id = node_id

    def status(self, of: int) -> Status:
        return self.service.swim.members[of].status

    def has_received_from(self, *others: int) -> bool:
        members = self.service.swim.members
        return all(other in members and members[other].last_received_ms is not None for other in others)


@asynccontextmanager
async def cluster(count: int) -> AsyncIterator[list[Broker]]:
    """Brokers from 1, which have all heard each other."""
    brokers = [Broker(node_id) for node_id in range(1, count + 1)]
    try:
        for broker in brokers:
            await broker.service.start()
        register(brokers)
        ids = {broker.node_id for broker in brokers}
        await until(lambda: all(broker.has_received_from(*ids - {broker.node_id}) for broker in brokers))
        yield brokers
    finally:
        for broker in brokers:
            await broker.service.stop()


def register(brokers: list[Broker]) -> None:
    registrations = {broker.node_id: (100 + broker.node_id, broker.service.address) for broker in brokers}
    for broker in brokers:
        broker.service.members_changed(registrations)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that datagrams bring about."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_broker_that_stops_is_declared_dead_by_all_others() -> None:
    async with cluster(3) as (first, second, third):
        await second.service.stop()
        await until(lambda: Dead(2, 102) in first.changes and Dead(2, 102) in third.changes)
        assert {first.status(3), third.status(1)} == {Status.ALIVE}


async def test_evidence_is_enough() -> None:
    """With an interval of a minute nothing else starts a ping after the first one."""
    slow = SwimSettings(interval_ms=60_000, ping_timeout_ms=30, suspicion_timeout_ms=60_000)
    first, second = Broker(1, slow), Broker(2, slow)
    async with first.service:
        async with second.service:
            register([first, second])
            await until(lambda: first.has_received_from(2))
            assert first.changes == []
        first.service.accuse(2)
        await until(lambda: Dead(2, 102) in first.changes)


async def test_a_dead_broker_that_responds_in_the_same_registration_is_alive() -> None:
    """Its datagrams are lost for a while, as in a network that is cut."""
    async with cluster(3) as (first, second, third):
        deaf = second.service.swim.channel
        epoch, deaf.epoch = deaf.epoch, None
        await until(lambda: Dead(2, 102) in first.changes and Dead(2, 102) in third.changes)
        deaf.epoch = epoch
        await until(lambda: Alive(2, 102) in first.changes and Alive(2, 102) in third.changes)
        assert deaf.incarnation > 0


async def test_invalid_datagrams_change_no_member() -> None:
    async with cluster(2) as (first, second):
        random = Random(1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noisy:
            for _ in range(1_000):
                noisy.sendto(random.randbytes(random.randrange(1_500)), first.service.address)
        await until(lambda: first.service.swim.channel.discarded.total() > 0)
        await second.service.stop()
        await until(lambda: Dead(2, 102) in first.changes)


async def test_a_listener_that_fails_stops_nothing() -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    async with cluster(2) as (first, second):
        seen: list[Change] = []

        def fails(change: Change) -> None:
            seen.append(change)
            raise RuntimeError("a listener")

        first.service._on_change = fails
        await second.service.stop()
        await until(lambda: Dead(2, 102) in seen)
    assert seen == [Suspected(2, 102), Dead(2, 102)]
    assert list(map(str, reported)) == ["a listener"] * 2


async def test_a_name_is_resolved_for_each_life() -> None:
    first, second = Broker(1), Broker(2)
    async with first.service, second.service:
        port = second.service.address[1]
        names: dict[int, tuple[int, Address]] = {1: (101, first.service.address), 2: (102, ("localhost", port))}
        first.service.members_changed(names)
        second.service.members_changed(names)
        assert not first.service.swim.members
        await until(lambda: 2 in first.service.swim.members and first.has_received_from(2))
        assert first.service.swim.members[2].address == ("127.0.0.1", port)
        first.service.members_changed(names | {2: (202, ("localhost", port))})
        assert not first.service.swim.members, "the new life may have another address"
        await until(lambda: 2 in first.service.swim.members)
        assert first.service.swim.members[2].epoch == 202


async def test_a_name_that_does_not_resolve_keeps_no_other_broker_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.coordinator.membership.service.RESOLVE_RETRY_S", 0.01)
    probed: list[str] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        probed.append(host)
        if host == "gone.invalid" and len(probed) < 5:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    broker = Broker(1)
    async with broker.service:
        broker.service.members_changed(
            {1: (101, broker.service.address), 2: (102, ("gone.invalid", 9)), 3: (103, ("there", 9))}
        )
        await until(lambda: set(broker.service.swim.members) == {3})
        await until(lambda: set(broker.service.swim.members) == {2, 3})


async def test_the_name_of_a_broker_that_is_silent_is_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """FD15. Its IP address has changed, and its registration has not."""
    monkeypatch.setattr("rota.coordinator.membership.service.RESOLVE_RETRY_S", 0.01)
    first, second, hosts = Broker(1), Broker(2), {"first": "127.0.0.1", "second": "127.0.0.1"}

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (hosts[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with first.service, second.service:
        registrations = {1: (101, ("first", first.service.address[1])), 2: (102, ("second", second.service.address[1]))}
        for broker in (first, second):
            broker.service.members_changed(registrations)
        await until(lambda: first.has_received_from(2))
        await second.service.stop()
        await until(lambda: Dead(2, 102) in first.changes)
        hosts["second"] = "127.0.0.2"
        moved = Broker(2, host="127.0.0.2", port=second.service.address[1])
        async with moved.service:
            moved.service.members_changed(registrations)
            await until(lambda: Alive(2, 102) in first.changes)


async def test_a_name_that_is_none_keeps_no_other_broker_waiting() -> None:
    """FD15. Python raises no OSError for it: it has an empty label, or one that is too long."""
    broker = Broker(1)
    async with broker.service:
        names = {2: (102, ("a..b", 9)), 3: (103, ("x" * 64, 9)), 4: (104, ("localhost", 9))}
        broker.service.members_changed({1: (101, broker.service.address)} | names)
        await until(lambda: set(broker.service.swim.members) == {4})


async def test_names_that_hang_keep_no_other_broker_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """FD15. A server of names that does not answer takes ten seconds; each name is requested for once at a time."""
    monkeypatch.setattr("rota.coordinator.membership.service.RESOLVE_RETRY_S", 0.01)
    requested, answer = list[str](), threading.Event()

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        requested.append(host)
        if host.startswith("hangs"):
            answer.wait(DEADLINE_S)
        if host == "gone" and requested.count("gone") < 5:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    broker, hanging = Broker(1), range(10, 22)
    async with broker.service:
        names: dict[int, tuple[int, Address]] = {other: (100 + other, (f"hangs{other}", 9)) for other in hanging}
        names |= {3: (103, ("there", 9)), 4: (104, ("gone", 9))}
        broker.service.members_changed({1: (101, broker.service.address)} | names)
        await until(lambda: set(broker.service.swim.members) == {3, 4})
        assert {requested.count(f"hangs{other}") for other in hanging} == {1}
        answer.set()
        await until(lambda: set(broker.service.swim.members) == set(names))


async def test_the_threads_that_resolve_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """FD15. All brokers of a large cluster have names, and no server of names answers."""
    requested, answer = list[str](), threading.Event()

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        requested.append(host)
        answer.wait(DEADLINE_S)
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    broker = Broker(1)
    async with broker.service:
        others = range(2, 2 + 2 * RESOLVING_MAX)
        names: dict[int, tuple[int, Address]] = {other: (100 + other, (f"b{other}", 9)) for other in others}
        broker.service.members_changed({1: (101, broker.service.address)} | names)
        await until(lambda: len(broker.service._resolving) == len(names) and len(requested) >= RESOLVING_MAX)
        assert len(requested) == RESOLVING_MAX
        answer.set()
        await until(lambda: set(broker.service.swim.members) == set(names))
    assert len(requested) == len(names)


async def test_a_datagram_that_the_system_refuses_costs_no_other_one() -> None:
    """FD17. A firewall of this machine refuses what is sent to one broker; here that is a broadcast."""
    sender = Broker(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        async with sender.service:
            for number in range(10):
                sender.service._perform([Send(("255.255.255.255", 9), b"refused")] * 2)
                sender.service._perform([Send(receiver.getsockname(), b"%d" % number)])
            await until(lambda: not sender.service._unsent)
            async with asyncio.timeout(DEADLINE_S):
                received = [await asyncio.get_running_loop().sock_recv(receiver, 100) for _ in range(10)]
    assert received == [b"%d" % number for number in range(10)]


async def sends_after_a_wrong_address(wrong: Address) -> bytes:
    sender = Broker(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        async with sender.service:
            sender.service._perform([Send(wrong, b"wrong"), Send(receiver.getsockname(), b"right")])
            async with asyncio.timeout(DEADLINE_S):
                return await asyncio.get_running_loop().sock_recv(receiver, 100)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("wrong", [("127.0.0.1", 70_000), ("127.0.0.1", 0), ("::1", 9), ("no-number", 9)])
def test_an_address_that_is_none_costs_no_datagram_to_another_one(run: Any, wrong: Address) -> None:
    """FD17. For a wrong port asyncio's transport closes its socket, for another family uvloop's raises."""
    assert run(sends_after_a_wrong_address(wrong)) == b"right"


async def test_a_port_that_is_taken_is_an_error_at_the_start() -> None:
    first = Broker(1)
    async with first.service:
        with pytest.raises(OSError, match="in use"):
            await Broker(2, port=first.service.address[1]).service.start()


async def test_a_stopped_detector_reports_nothing_and_leaves_nothing() -> None:
    async with cluster(2) as (first, second):
        await first.service.stop()
        await first.service.stop()
        await until(lambda: Dead(1, 101) in second.changes)
        first.service.accuse(2)
        assert first.changes == []
        assert first.service._timer is None
    names = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}  # type: ignore[union-attr]
    assert not [name for name in names if "Swim" in name]
