"""A cluster whose disks fail and fill, whose clocks jump and whose store ends sessions within writes of many commits.

As `cluster_world`, with these scenarios among its faults; a seed begins with one of them. Commits of the store are
small here, so that the creation and the deletion of a topic of some partitions take several.

Laws, beside those of `cluster_world`
    A5   What was acknowledged outlives failed writes and syncs: a failed log is offline until it was recovered.
    CM5  A broker that comes back with an empty disk is not elected with what it lost, and copies everything again.
    UE1  Where unclean elections are allowed the last replica that is alive leads, and in the end all have its records.
    TW1  A topic is there as a whole or not at all, whenever the session of its creator has ended.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from tests.chaos.line import Line
from tests.simulation.client_world import LogLine, silent
from tests.simulation.cluster_world import BROKERS, HEALING_S, BrokerProcess, ClusterWorld, play_in
from tests.simulation.loop import SimLoop

from rota.client import KafkaError, Producer, ProducerConfig
from rota.coordinator.log.files import Buffer, FileSystem
from rota.coordinator.metadata import commits, znodes
from rota.coordinator.metadata.topic import PartitionState
from rota.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.wire import UUID_ZERO

UNCLEAN, LARGE = "u", "large"
LARGE_PARTITIONS = 8
OPS_PER_COMMIT = 16  # a creation of LARGE takes four commits
ELECTED_S = 20.0
NOTICED_S = 5.0


class FaultyFiles(FileSystem):
    """The files of one broker. `is_full`: no room; `broken`: reads work, writes and syncs below this folder fail."""

    __slots__ = ("_random", "broken", "failures", "is_full")

    def __init__(self, random: Random) -> None:
        self._random, self.is_full, self.broken, self.failures = random, False, "", 0

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        self._check(fd)
        if self.is_full and self._random.random() < 0.5:
            self.failures += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.is_full:
            data = memoryview(data)[: self._random.randint(1, len(data))]
        return super().pwrite(fd, data, position)

    def fsync(self, fd: int) -> None:
        self._check(fd)
        super().fsync(fd)

    def _check(self, fd: int) -> None:
        if self.broken and self.broken in os.readlink(f"/proc/self/fd/{fd}"):
            self.failures += 1
            raise OSError(errno.EIO, "Input/output error")


class StorageWorld(ClusterWorld):
    """`play(seed)`."""

    commits_take_time = True

    def __init__(self, loop: SimLoop, seed: int, log_line: LogLine, folder: Path) -> None:
        super().__init__(loop, seed, log_line, folder)
        self.files = {broker: FaultyFiles(Random(f"files {seed} {broker}")) for broker in BROKERS}
        for broker, process in self.brokers.items():
            process.system = self.files[broker]
        self.scenarios: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self._break_log,
            self._fill_disk,
            self._lose_disk,
            self._elect_unclean,
            self._jump,
            self._expire_within_write,
        ]
        self.first = self.scenarios[seed % len(self.scenarios)]
        self.unclean_elections = self.expired = self.unclean_sent = 0

    async def _create_topic(self) -> None:
        await super()._create_topic()
        config = (CreatableTopicConfig(name="unclean.leader.election.enable", value="true"),)
        topic = CreatableTopic(name=UNCLEAN, num_partitions=1, replication_factor=3, configs=config)
        line = await Line.open(f"{self.brokers[1].host}:{self.brokers[1].port}")
        answer = await line.send_request(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
        assert answer.topics[0].error_code == 0, answer
        await line.close()

    # ---- faults

    async def _inject_faults(self) -> None:
        self.begin(self._write_unclean)
        await self.first()
        lock = asyncio.Lock()
        administrator = [self.admin.create, self.admin.delete, self.admin.reassign]
        await asyncio.gather(
            self._faults([*self.scenarios, self._kill, self._restart], lock),
            self._faults(administrator, asyncio.Lock()),
            self._faults([self._part, self._lose_datagrams, self._slow], self._network),
        )
        for files in self.files.values():
            files.is_full, files.broken = False, ""

    async def _break_log(self) -> None:
        """The disk refuses to write one partition, also its syncs, for a while."""
        broker = self.random.choice(BROKERS)
        name = self.random.choice([f"/{partition.topic}-{partition.partition}/" for partition in self.partitions])
        name = self.random.choice((name, name, "/__consumer_offsets-0/"))
        await self._with(broker, f"cannot write {name}", broken=name)

    async def _fill_disk(self) -> None:
        await self._with(self.random.choice(BROKERS), "has no room", is_full=True)

    async def _with(self, broker: int, what: str, *, is_full: bool = False, broken: str = "") -> None:
        self.log_line(f"the disk of broker {broker} {what}")
        files = self.files[broker]
        files.is_full, files.broken = is_full, broken
        await asyncio.sleep(self.random.choice((0.3, 2.0, 6.0)))
        files.is_full, files.broken = False, ""
        self.log_line(f"the disk of broker {broker} works again")
        await asyncio.sleep(NOTICED_S)

    async def _lose_disk(self) -> None:
        """One machine comes back with an empty disk, when another one has all its records."""
        async with self._network, self._sessions:
            victim = self.random.choice(self._up())
            others = {process.broker_id for process in self._up() if process is not victim}
            if any(others.isdisjoint(state.isr) for name, state in self.named_states() if name != UNCLEAN):
                return
            self.log_line(f"broker {victim.broker_id} loses its disk")
            await victim.crash(is_silent=self.random.random() < 0.5)
            shutil.rmtree(victim.folder)
            victim.folder.mkdir()
            await asyncio.sleep(self.random.choice((0.0, 0.3, 3.0)))
            self.log_line(f"broker {victim.broker_id} starts")
            await victim.start()
            await asyncio.sleep(NOTICED_S)

    async def _elect_unclean(self) -> None:
        """UE1. One broker misses records of the topic and is then the only one that is alive."""
        async with self._network, self._sessions:
            if len(self._up()) < len(BROKERS):
                return
            last, *others = self.random.sample(self._up(), len(BROKERS))
            self.log_line(f"only broker {last.broker_id}, which misses records, will be left")
            await last.crash(is_silent=False)
            if not await self._becomes(lambda state: last.broker_id not in state.isr):
                await last.start()  # nobody else leads the topic: a disk was lost shortly before
                return
            await asyncio.sleep(1.0)
            for process in others:
                await process.crash(is_silent=False)
            await last.start()
            elected = await self._becomes(lambda state: state.leader == last.broker_id)
            assert elected, f"UE1: broker {last.broker_id} was not elected in {ELECTED_S} s: {self._unclean()}"
            self.unclean_elections += 1
            for process in others:
                await process.start()
            await asyncio.sleep(NOTICED_S)

    async def _becomes(self, condition: Callable[[PartitionState], bool]) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(ELECTED_S):
                while not condition(self._unclean()):
                    await asyncio.sleep(0.05)
                return True
        return False

    def _unclean(self) -> PartitionState:
        return next(state for name, state in self.named_states() if name == UNCLEAN)

    async def _jump(self) -> None:
        """The time of day of one broker is set."""
        process = self.random.choice(list(self.brokers.values()))
        process.skew_s += self.random.choice((-86_400.0, -600.0, 600.0, 86_400.0))
        self.log_line(f"the clock of broker {process.broker_id} is {process.skew_s} s off")

    async def _expire_within_write(self) -> None:
        """TW1. The session of a broker ends between the commits of a creation or a deletion."""
        up = self._up()
        if not up or (session := (process := self.random.choice(up)).session) is None:
            return
        count = self.random.randint(1, 3)
        self.log_line(f"the session of broker {process.broker_id} ends after {count} commits")
        session.expire_after(count)
        await self._produce_large(process)
        self.expired += session.expired_within
        session.expire_after(None)

    async def _produce_large(self, process: BrokerProcess) -> None:
        exists = znodes.topic_path(LARGE) in self.shared.tree.nodes and self.random.random() < 0.5
        create = CreatableTopic(name=LARGE, num_partitions=LARGE_PARTITIONS, replication_factor=2)
        delete = DeleteTopicState(name=LARGE, topic_id=UUID_ZERO)
        request: Any = (
            DeleteTopicsRequest(topics=(delete,), timeout_ms=3_000)
            if exists
            else CreateTopicsRequest(topics=(create,), timeout_ms=3_000)
        )
        await self.admin.send_request_to(
            process, f"{'delete' if exists else 'create'} {LARGE}", request, 6 if exists else 7
        )

    async def _write_unclean(self) -> None:
        """Records that may be lost, acks=1."""
        config = ProducerConfig(
            bootstrap_servers=self.bootstrap,
            acks=1,
            enable_idempotence=False,
            request_timeout_ms=2_000,
            delivery_timeout_ms=5_000,
        )
        while not self.is_over:
            with suppress(KafkaError):
                async with Producer(config) as producer:
                    while not self.is_over:
                        await asyncio.sleep(0.2)
                        await producer.send(UNCLEAN, str(self.unclean_sent).encode(), partition=0)
                        self.unclean_sent += 1

    # ---- laws

    async def _caught_up(self) -> None:
        """TW1: also the topic of many partitions can be created, whatever was left of it. Replicas of the topic with
        unclean elections are compared, too."""
        ends = self.loop.time() + HEALING_S
        while len(self._unclean().isr) < len(BROKERS):
            assert self.loop.time() < ends, f"not in the ISR {HEALING_S} s after everything healed: {self._unclean()}"
            await asyncio.sleep(1.0)
        while not any(name == LARGE for name, _ in self.named_states()):
            assert self.loop.time() < ends, "TW1: a topic cannot be created over what is left of it"
            await self._produce_large(self.brokers[1])
            await asyncio.sleep(1.0)
        assert sum(name == LARGE for name, _ in self.named_states()) == LARGE_PARTITIONS, "TW1: a part of the topic"
        await super()._caught_up()

    async def _check_logs(self) -> None:
        await super()._check_logs()
        await self._check_replicas(UNCLEAN, 0)


def play(seed: int, log_line: LogLine = silent) -> StorageWorld:
    """The whole run of a seed, and its laws."""
    with mock.patch.object(commits, "OPS_PER_COMMIT_MAX", OPS_PER_COMMIT):
        return play_in(StorageWorld, seed, log_line)
