"""One Rota broker, a fault proxy that looks like three brokers, and real clients, in a loop that a seed controls.

Broker, proxy, producers and consumers are the real ones, with links in memory and virtual time. During the run
connections break or become silent, leaders and coordinators move, brokers fail, responses are errors; members join,
work slowly, crash and leave. Then all faults end, and the remaining members read every acknowledged record.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import copy_context
from random import Random
from typing import Any
from unittest import mock

from tests.chaos.line import Line
from tests.chaos.requests import create_topic, records_of
from tests.client.fault_proxy import FaultProxy
from tests.simulation.client_actors import HEARTBEAT_MS, SESSION_MS, Reader, Writer
from tests.simulation.client_history import ClientHistory
from tests.simulation.loop import FakeSocket, SimLoop, simulate
from tests.simulation.net import WHO

from rota.client.types import TopicPartition
from rota.coordinator.api import join_group
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.presets import PRESETS
from rota.coordinator.network import listener
from rota.coordinator.scheduling.clock import Clock
from rota.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

RUN_S = 60.0
HEALING_S = 300.0  # in which all has to be read
CLOSING_S = 120.0
TURNS_PER_S_MAX = 20_000
PARTITIONS = 3
WRITERS, READERS = 2, 3
OFFSET_COMMIT = 8

LogLine = Callable[[str], None]

# what may be answered once and must not be seen
PASSING: dict[int, tuple[int, ...]] = {
    0: (3, 5, 6, 7, 19, 20, 56, 2, 100),  # Produce
    1: (3, 6, 9, 56, 70, 71, 74, 75, 78, 100),  # Fetch
    2: (5, 6, 7, 56, 78),  # ListOffsets
    3: (5,),  # Metadata
    8: (7, 14, 15, 16),  # OffsetCommit
    9: (14, 15, 16, 88),  # OffsetFetch
    10: (15,),  # FindCoordinator
    11: (14, 15, 16),  # JoinGroup
    12: (14, 15, 16, 27),  # Heartbeat
    13: (14, 15, 16),  # LeaveGroup
    14: (14, 15, 16, 27),  # SyncGroup
    22: (7, 14, 15, 51),  # InitProducerId
}


def silent(line: str) -> None:
    pass


class World:
    """`play(seed)`."""

    topic = "t"
    passing = PASSING
    member_kind: Callable[[Any, str, Random], Any] = Reader

    def __init__(self, loop: SimLoop, seed: int, log_line: LogLine) -> None:
        self.loop, self.random, self._log_line = loop, Random(f"story {seed}"), log_line
        self.history = ClientHistory()
        self.partitions = [TopicPartition(self.topic, at) for at in range(PARTITIONS)]
        self.strategies: tuple[str, ...] = self.random.choice(
            (
                ("range",),
                ("roundrobin",),
                ("sticky",),
                ("cooperative-sticky",),
                ("range", "cooperative-sticky"),
                ("cooperative-sticky",),
            )
        )
        self.is_over = self.is_read = False
        self.delay_ms = self.random.choice((0, 500, 3_000))
        self.proxy: FaultProxy
        self.address = ""
        self._names = itertools.count(1)
        self._lives: dict[str, asyncio.Task[None]] = {}
        self.failures: list[BaseException] = []

    @property
    def properties(self) -> dict[str, str]:
        """What is set in the broker."""
        return {"listeners": "PLAINTEXT://127.0.0.1:0", "group.initial.rebalance.delay.ms": str(self.delay_ms)}

    def protocol(self, random: Random) -> dict[str, Any]:
        """The group protocol of one consumer, and its settings."""
        return {
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "partition_assignment_strategy": self.strategies,
        }

    @property
    def bootstrap(self) -> str:
        return self.proxy.bootstrap

    def log_line(self, line: str) -> None:
        self._log_line(f"{self.loop.time():>9.3f} {line}")

    # ---- the run

    async def play(self) -> None:
        async with self._broker() as address, FaultProxy(address) as self.proxy:
            self.address = address
            self.proxy.on_request = self._request_received
            await self._make_topic(address)
            writers = [self.begin(Writer(self, self.name("w"), self._fork()).act) for _ in range(WRITERS)]
            readers = [asyncio.ensure_future(self._members(place)) for place in range(READERS)]
            await self._inject_faults()
            self._heal()
            await self._within(HEALING_S, asyncio.gather(*writers, *readers), self._left)
            self._check_ended()
            await self._check_log(address)
        assert not self.loop.failures, self.loop.failures
        assert self.loop.turns < TURNS_PER_S_MAX * self.loop.time(), "livelock"

    @contextlib.asynccontextmanager
    async def _broker(self) -> AsyncIterator[str]:
        config = BrokerConfig({**PRESETS["dev"], **self.properties})
        ids = itertools.count(1)
        with (
            mock.patch.object(listener, "open_sockets", self._sockets),
            mock.patch.object(join_group, "uuid4", ids.__next__),
        ):
            async with Broker(config, memory=True, clock=Clock(self.loop.wall, self.loop.time)) as broker:
                host, port = broker.address
                yield f"{host}:{port}"

    def _sockets(self, endpoint: Any) -> list[Any]:
        return [FakeSocket((endpoint.host, self.loop.network.port()))]

    async def _make_topic(self, address: str) -> None:
        line = await Line.open(address)
        await create_topic(line, self.topic, PARTITIONS)
        await line.close()

    # ---- who acts

    def name(self, kind: str) -> str:
        return f"{kind}{next(self._names)}"

    def _fork(self) -> Random:
        return Random(self.random.random())

    def begin(self, act: Callable[[], Coroutine[Any, Any, None]], name: str = "") -> asyncio.Task[None]:
        """In a context of its own, by which its tasks, timers and links are known."""
        name = name or self.name("x")
        context = copy_context()
        context.run(WHO.set, name)
        life = self.loop.create_task(act(), context=context, name=name)
        self._lives[name] = life
        return life

    async def _members(self, place: int) -> None:
        """One place in the group: a member after the other."""
        random = self._fork()
        static = f"static-{place}" if random.random() < 0.2 else None
        while not self.is_read:
            await asyncio.sleep(random.choice((0.0, 1.0, 4.0)))
            name = self.name("m")
            reader = type(self).member_kind(self, name, self._fork())
            reader.instance, reader.place = static, f"place-{place}"
            self.log_line(f"{name} comes")
            life = self.begin(reader.act, name)
            end = random.random()
            if end < 0.6 and not self.is_over:
                await asyncio.wait({life}, timeout=random.choice((0.5, 5.0, 15.0)))
                if not life.done() and end < 0.4:
                    await self._crash(name, life, random.random() < 0.5)
                    continue
                if not life.done():
                    await self._forget(name, life, reader, random.choice((0.0, 5.0, 20.0)))
                else:
                    await life
            else:
                await life
            self._check_nothing_left(name)
            self.log_line(f"{name} has gone")

    async def _forget(self, name: str, life: asyncio.Task[None], reader: Reader, seconds: float) -> None:
        """The user's task is cancelled wherever it is, and nobody closes the consumer for a while."""
        self.log_line(f"{name} is forgotten for {seconds} s")
        life.cancel()
        await asyncio.wait({life})
        self._lives.pop(name)
        await asyncio.sleep(seconds)
        if reader.consumer is not None:
            await self.begin(reader.close, name)
        self._lives.pop(name, None)

    async def _crash(self, name: str, life: asyncio.Task[None], is_silent: bool) -> None:
        """The process is gone, or its machine: nobody says goodbye."""
        self.log_line(f"{name} crashes {'silently' if is_silent else ''}")
        await self.loop.crash(name, is_silent=is_silent)

    # ---- faults

    async def _inject_faults(self) -> None:
        kinds = [
            self._cut,
            self._silence,
            self._move_leader,
            self._move_leader,
            self._move_coordinator,
            self._vanish,
            self._lag,
            self._refuse,
            self._refuse,
            self._lose_answer,
            self._slow,
            self._grow,
        ]
        often = self.random.choice((0.3, 1.0, 5.0))
        while self.loop.time() < RUN_S:
            await asyncio.sleep(self.random.expovariate(1 / often))
            await self.random.choice(kinds)()

    def _links(self) -> list[Any]:
        ports = {broker.port for broker in self.proxy.brokers.values()}
        return [link for link in self.loop.network.open_links() if link.address[1] in ports]

    async def _cut(self) -> None:
        if links := self._links():
            link = self.random.choice(links)
            self.log_line(f"a link of {link.who} is cut")
            link.cut()

    async def _silence(self) -> None:
        if links := self._links():
            link = self.random.choice(links)
            self.log_line(f"a link of {link.who} falls silent")
            link.silence()

    async def _move_leader(self) -> None:
        partition, node = self.random.choice(self.partitions), self._node()
        self.log_line(f"{partition} moves to {node}")
        self.proxy.lead(partition, node)

    async def _move_coordinator(self) -> None:
        node = self._node()
        self.log_line(f"the coordinator moves to {node}")
        self.proxy.coordinate("g", node)

    async def _vanish(self) -> None:
        nodes = self.random.choice(([self._node()], [self._node()], [1, 2, 3]))
        self.log_line(f"{nodes} vanish")
        await self.proxy.stop_brokers(*nodes)
        await asyncio.sleep(self.random.choice((0.1, 2.0, 8.0)))
        self.log_line(f"{nodes} are back")
        await self.proxy.start_brokers(*nodes)

    async def _lag(self) -> None:
        if self.random.random() < 0.5:
            self.proxy.serve_old_metadata(self._node())
        else:
            self.proxy.serve_current_metadata()

    async def _refuse(self) -> None:
        api = self.random.choice(list(self.passing))
        code = self.random.choice(self.passing[api])
        self.log_line(f"API {api} will be refused with {code}")
        self.proxy.refuse(api, code, times=self.random.randrange(3) + 1, after=self.random.random() < 0.3)

    async def _lose_answer(self) -> None:
        api = self.random.choice([*self.passing, 0, 0, 0])
        fault = self.random.choice((self.proxy.close, self.proxy.swallow, self.proxy.cut))
        self.log_line(f"an answer of API {api} will be lost: {fault.__name__}")
        if fault == self.proxy.cut:
            fault(api)
        else:
            fault(api, after=self.random.random() < 0.7)

    async def _grow(self) -> None:
        """The topic gets another partition."""
        if len(self.partitions) < PARTITIONS + 2 and self.random.random() < 0.3:
            count = len(self.partitions) + 1
            self.log_line(f"{count} partitions")
            line = await Line.open(self.address)
            wanted = CreatePartitionsTopic(name=self.topic, count=count)
            answer = await line.send_request(CreatePartitionsRequest(topics=(wanted,), timeout_ms=1_000), 1)
            await line.close()
            assert not answer.results[0].error_code
            self.partitions.append(TopicPartition(self.topic, count - 1))

    async def _slow(self) -> None:
        self.loop.network.delay_s = self.random.choice((0.0005, 0.002, 0.05, 0.3))

    def _node(self) -> int:
        return self.random.randrange(3) + 1

    def _heal(self) -> None:
        self.log_line("everything heals")
        self.loop.network.delay_s = 0.002
        for fault in self.proxy.faults:
            fault.end()
        self.proxy.serve_current_metadata()
        self.is_over = True

    # ---- laws

    def _request_received(self, node: int, request: Any) -> None:
        if request.KEY != OFFSET_COMMIT:
            return
        for topic in request.topics:
            for item in topic.partitions:
                self.history.commit(
                    TopicPartition(self.topic, item.partition_index), item.committed_offset, request.member_id
                )

    async def _within(self, seconds: float, work: asyncio.Future[Any], left: Callable[[], str]) -> None:
        ends = self.loop.time() + seconds
        while not work.done():
            assert self.loop.time() < ends, f"not done {seconds} s after everything healed: {left()}"
            if not self.history.unread() and all(life.done() for life in self._writers()):
                self.is_read = True
            await asyncio.wait({work}, timeout=0.5)
        await work

    def _writers(self) -> list[asyncio.Task[None]]:
        return [life for name, life in self._lives.items() if name.startswith("x")]

    def _left(self) -> str:
        lives = [name for name, life in self._lives.items() if not life.done()]
        return f"unread: {self.history.unread()[:5]}; alive: {lives}"

    def _check_nothing_left(self, name: str) -> None:
        """After `close` no task, timer or transport of the client is left."""
        assert not self.loop.tasks_of(name), f"{name} leaves tasks: {self.loop.tasks_of(name)}"
        assert not self.loop.timers_of(name), f"{name} leaves timers: {self.loop.timers_of(name)}"
        assert not self.loop.links_of(name), f"{name} leaves links"

    def _check_ended(self) -> None:
        for name in self._lives:
            self._check_nothing_left(name)
        for writer in self.history.writers:
            reply = writer.acked.keys() | writer.lost.keys()
            self.log_line(
                f"{writer.name}: {writer.sent} sent, {len(writer.acked)} acknowledged, {len(writer.lost)} lost, "
                f"{writer.sent - len(reply)} given up"
            )

    async def _check_log(self, address: str) -> None:
        line = await Line.open(address)
        log = {item: await records_of(line, item.partition, self.topic) for item in self.partitions}
        await line.close()
        self.history.check_log(log)
        self.log_line(
            f"{sum(map(len, log.values()))} records, {self.history.commits} commits, "
            f"{self.history.rebalances} assignments"
        )


def play(seed: int, log_line: LogLine = silent, kind: type[World] = World) -> World:
    """The whole run of a seed, and its laws."""
    worlds: list[World] = []

    async def main(loop: SimLoop) -> None:
        worlds.append(kind(loop, seed, log_line))
        await worlds[0].play()

    simulate(seed, main)
    return worlds[0]
