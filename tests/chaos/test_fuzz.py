"""Noise on some connections, a group that works on another: it notices nothing, and nothing stays behind. P1, G4.

Connections with noise send wild requests and garbage, read or do not read the answers, and go when they like.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from structlog.testing import capture_logs
from tests.chaos.line import Line
from tests.chaos.noise import Noise, framed
from tests.chaos.requests import batch, commit, committed, create_topic, produce, produced, records_of

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.presets import PRESETS
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest

NOISY = 4  # connections at a time
REQUESTS = 900  # of each
GARBAGE, LEAVES, DEAF = 0.06, 0.08, 0.1  # how often
SETTLED_S_MAX = 10.0
PROPERTIES = {**PRESETS["dev"], "listeners": "PLAINTEXT://127.0.0.1:0"}


class Good:
    """A member of the group "good" that also produces to its own topic, "t", and reads it."""

    def __init__(self, line: Line) -> None:
        self.line, self.rounds = line, 0
        self.topic_id = b""
        self.member: JoinGroupResponse | None = None

    async def join(self) -> None:
        self.topic_id = await create_topic(self.line)
        assert (await self.line.send_request(FindCoordinatorRequest(key="good"), 2)).error_code == ErrorCode.NONE
        protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
        self.member = await self.line.send_request(
            JoinGroupRequest(
                group_id="good",
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id="",
                group_instance_id="it",
                protocol_type="consumer",
                protocols=protocols,
            ),
            7,
        )
        synced = await self.line.send_request(
            SyncGroupRequest(group_id="good", generation_id=1, member_id=self.member.member_id, group_instance_id="it"),
            3,
        )
        assert synced.error_code == ErrorCode.NONE

    async def work(self) -> None:
        """One round: every answer is the right one."""
        assert self.member is not None
        heartbeat = HeartbeatRequest(
            group_id="good", generation_id=1, member_id=self.member.member_id, group_instance_id="it"
        )
        assert (await self.line.send_request(heartbeat, 4)).error_code == ErrorCode.NONE
        response = await self.line.send_request(produce(self.rounds % 3, batch(b"%d" % self.rounds)), 9)
        assert produced(response) == (ErrorCode.NONE, self.rounds // 3)
        answer = await self.line.send_request(commit("good-offsets", 0, self.rounds), 8)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        assert await committed(self.line, "good-offsets", 0) == (self.rounds, "")
        self.rounds += 1

    async def check(self) -> None:
        """All that was produced is there, in its order."""
        for partition in range(3):
            values = [b"%d" % at for at in range(partition, self.rounds, 3)]
            assert list((await records_of(self.line, partition)).values()) == values


class Noisy:
    """One source of noise, on one connection after the other."""

    def __init__(self, broker: Broker, noise: Noise, seed: int) -> None:
        self._broker, self._noise, self._random = broker, noise, Random(seed)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def make(self, requests: int) -> None:
        for _ in range(requests):
            if self._writer is None or self._writer.is_closing() or self._random.random() < LEAVES:
                await self._anew()
            await self._send()
        await self._leave()

    async def _send(self) -> None:
        assert self._writer is not None
        is_garbage = self._random.random() < GARBAGE
        self._writer.write(self._noise.garbage() if is_garbage else framed(self._noise.frame()))
        if self._random.random() < 0.5:
            await asyncio.sleep(0)
        if self._reading is not None:
            with contextlib.suppress(OSError):
                await self._writer.drain()

    async def _anew(self) -> None:
        await self._leave()
        reader, self._writer = await asyncio.open_connection(*self._broker.address)
        if self._random.random() >= DEAF:
            self._reading = asyncio.get_running_loop().create_task(self._listen(reader))

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                self._noise.learn(await reader.readexactly(size))

    async def _leave(self) -> None:
        writer, self._writer = self._writer, None
        reading, self._reading = self._reading, None
        if writer is not None:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        if reading is not None:
            await reading


async def settled(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(SETTLED_S_MAX):
        while not true():
            await asyncio.sleep(0.001)


async def beside(work: Callable[[], Awaitable[None]], noise: Awaitable[Any]) -> None:
    """Work on for as long as there is noise."""
    under_way = asyncio.ensure_future(noise)
    while not under_way.done():
        await work()
    await under_way


def left_behind(broker: Broker) -> dict[str, int]:
    """What should be nothing once only the good connection is there."""
    connections = broker.listener.connections
    return {
        "connections": len(connections) - 1,
        "bytes held": connections.request_memory.held_bytes,
        "watches": sum(len(partition._watches) for partition in broker.partitions.all()),
        "fetches that wait": sum(key[0] == "fetch" for key in broker.timers._heap._armed if isinstance(key, tuple)),
        "shards that are down": sum(shard.state.value != "Ready" for shard in broker.groups.shards),
        "waits for the high watermark": sum(partition.state.has_waits for partition in broker.partitions.all()),
        "writes in flight": sum(len(shard._in_flight) for shard in broker.groups.shards),
        "partitions to flush": len(broker.durability._unflushed),
    }


async def test_random_bytes_do_not_affect_clients_and_leave_no_state(seed: int) -> None:
    mistakes: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: mistakes.append(context))
    broker = Broker(BrokerConfig(PROPERTIES), memory=True)
    with capture_logs() as logs:
        await broker.start()
        good = Good(await Line.open("{}:{}".format(*broker.address)))
        await good.join()
        seeds = range(1000 * seed, 1000 * seed + NOISY)
        noisy = [Noisy(broker, Noise(item, good.topic_id), item) for item in seeds]
        await beside(good.work, asyncio.gather(*(item.make(REQUESTS) for item in noisy)))
        await good.check()
        await settled(lambda: not any(left_behind(broker).values()))
        await good.work()
        await good.line.close()
        await broker.stop()
    gc.collect()
    assert mistakes == []
    assert [line for line in logs if line["log_level"] == "error"] == []
    assert len(broker.timers) == 0
