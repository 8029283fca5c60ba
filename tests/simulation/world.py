"""A coordinator and its clients in a deterministic world: the seed decides time, delays, crashes and requests.

The coordinator, its shards, groups, timers and logs are the real ones, behind the real API functions; there is no
socket, no thread and no clock. A simulated minute takes some milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from importlib import import_module
from itertools import count
from random import Random
from typing import Any

from tests.simulation.clients import Client, Loner
from tests.simulation.member import Member, Trace
from tests.unit.coordinator.api.data_world import World as Parts

from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.coordinator.group_coordinator import GroupCoordinator
from rota.coordinator.log.contract import Log, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.replica.partition import Partition
from rota.coordinator.runtime.replay import Replay
from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.timers import TimerHeap
from rota.protocol.registry import APIS, snake_case

SHARDS = 2
RUN_MS = 60_000
RETENTION_MS = 20_000
EXPIRE_EVERY_MS = 5_000
SEGMENT_BYTES = 4_096
WAIT_MS_MAX = 310_000  # a new member is kept for five minutes until its generation begins
AFTERWARDS_MS = 400_000
EVERYTHING_BYTES = 1 << 40

LogLine = Callable[[str], None]


async def _has_offsets_topic() -> bool:
    return True


def silent(line: str) -> None:
    pass


class World(Parts):
    """`play` runs the world of a seed and checks the laws."""

    def __init__(self, seed: int, log_line: LogLine = silent) -> None:
        self.random, self._log_line = Random(seed), log_line
        super().__init__({"offsets.topic.num.partitions": str(SHARDS)})
        self.topic("t", 3)
        self.topic(CONSUMER_OFFSETS, SHARDS, cleanup_policy="compact")
        self.offsets = [self.partition(CONSUMER_OFFSETS, index) for index in range(SHARDS)]
        self.flushes = self.random.random() < 0.5  # else the page cache is trusted, which a killed process leaves alone
        for log in map(self.log, range(SHARDS)):
            flush_messages = 1 if self.flushes else None
            log.config = replace(log.config, segment_bytes=SEGMENT_BYTES, flush_messages=flush_messages)
        self.crashes = self.random.choice((0.0, 0.01, 0.05))  # at a turn of the loop
        self.delay_ms = self.random.choice((0, 500, 3_000))  # group.initial.rebalance.delay.ms
        self.trace = Trace()
        self._away: dict[int, Log] = {}  # logs of disks that are away
        self.life = 0
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._places, self._tokens = count(), count()
        self.clients = self._clients()
        self._begin()

    def _clients(self) -> list[Client]:
        """Three members that come and go, a static one, two that commit without a group."""

        def member(**more: Any) -> Callable[[], Member]:
            return lambda: Member("g", self.trace, self.random, **more)

        makers = [member(), member(), member(session_ms=10_000), member(instance="i")]
        makers += 2 * [lambda: Loner("loners", self.trace, self.random)]
        return [Client(f"c{at}", self, make) for at, make in enumerate(makers)]

    # ---- time

    def log_line(self, line: str) -> None:
        self._log_line(f"{self.now_ms - self.started_ms:>7} {line}")

    def at(self, wait_ms: float, call: Callable[[], None]) -> None:
        heappush(self._agenda, (self.now_ms + round(wait_ms), next(self._places), call))

    def soon(self, wait_ms: int) -> int:
        """A wait of up to that long."""
        return self.random.randrange(wait_ms) + 1

    def run(self, for_ms: int) -> None:
        until_ms = self.now_ms + for_ms
        while True:
            ringing_ms = self.timers.next_ms()
            times = [until_ms, *([] if ringing_ms is None else [ringing_ms]), *(one[0] for one in self._agenda[:1])]
            self.now_ms = max(self.now_ms, min(times))
            if self.now_ms >= until_ms:
                return
            for call in self.timers.due(self.now_ms):
                call()
                self._turn()
            while self._agenda and self._agenda[0][0] <= self.now_ms:
                heappop(self._agenda)[2]()
                self._turn()

    def _turn(self) -> None:
        """The end of a turn of the loop, before any step of which the broker may crash."""
        while self._tick_queue:
            if self.random.random() < self.crashes:
                self.crash()
            else:
                self._tick_queue.pop(0)()

    # ---- the broker

    def log(self, index: int) -> MemoryLog:
        log = self.offsets[index].log
        assert isinstance(log, MemoryLog)
        return log

    def _begin(self) -> None:
        self.life += 1
        self.started_ms = getattr(self, "started_ms", self.now_ms)
        self.timers = TimerHeap()
        self._tick_queue: list[Callable[[], None]] = []
        self._unflushed: set[Partition] = set()
        self.offsets = [self._opened(index) for index in range(SHARDS)]
        self.pending: dict[int, tuple[Any, int]] = {}
        self.node.groups = GroupCoordinator(
            shards=SHARDS,
            config=GroupConfig(initial_rebalance_delay_ms=self.delay_ms),
            partition=self.offsets.__getitem__,
            timers=self.timers,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
            tick_queue=self._tick_queue.append,
            ensure_topic=_has_offsets_topic,
            leader=lambda index: 0,
        )
        for index in range(SHARDS):
            self.node.groups.lead(index, 0)

    def _opened(self, index: int) -> Partition:
        """The partition of a process that has just started, over the log that the last one has left."""
        was = self.offsets[index]
        return Partition(was.topic, was.topic_id, index, 0, was.log, timers=self.timers, flush_worker=self)

    def crash(self) -> None:
        """The process is gone with all that is soft; of what was not flushed some may have reached the medium."""
        for index, partition in enumerate(self.offsets):
            if partition.offline is not None:
                self._reopen(partition)
            kept_bytes = self.random.choice((0, self.random.randrange(500), EVERYTHING_BYTES))
            self.log(index).crash(kept_bytes if self.flushes else EVERYTHING_BYTES)
        self.log_line("crash")
        self._begin()
        for client in self.clients:
            client.cut()

    def flush_soon(self, partition: Partition) -> None:
        """The flush worker of the partitions: a flush takes up to 20 ms."""
        if partition not in self._unflushed:
            self._unflushed.add(partition)
            self.at(self.soon(20), partial(self._flush, partition))

    def _flush(self, partition: Partition) -> None:
        """A partition of an earlier process is not in `_unflushed` any more."""
        if partition in self._unflushed:
            self._unflushed.remove(partition)
            if partition.offline is None:
                partition.log.flush()
                partition.flushed()

    def outage(self) -> None:
        """A disk that is away for a while: its shard loses what was not written, and is loaded again."""
        index = self.random.randrange(SHARDS)
        partition = self.offsets[index]
        if partition.offline is not None:
            return
        self._away[index] = partition.log
        self.log_line(f"{partition} is away")
        partition.fail("the disk is away")
        self.node.groups.storage_failed(self.node.groups.shards[index], StorageFailed("the disk is away"))
        self.at(self.soon(3_000), partial(self._back, partition))

    def _back(self, partition: Partition) -> None:
        if partition.offline is not None and partition in self.offsets:
            self._reopen(partition)

    def _reopen(self, partition: Partition) -> None:
        state = self.node.topics.partition(CONSUMER_OFFSETS, partition.index)
        assert state is not None
        epoch = partition.leader_epoch
        partition.reopen(self._away[partition.index], replace(state, leader_epoch=epoch), self.now_ms)

    def arrive(self, request: Any, version: int, client_id: str, received: Callable[[Any], None]) -> None:
        """A request has come; `heard` gets the answer, unless a crash comes first."""
        token, life = next(self._tokens), self.life
        self.pending[token] = request, self.now_ms
        name = snake_case(APIS[request.KEY].name)
        reply = self.serve(getattr(import_module(f"rota.coordinator.api.{name}"), name), request, version, client_id)

        def answered(body: Any) -> None:
            assert life == self.life, "an answer from a broker that is dead"
            del self.pending[token]
            received(body)

        if isinstance(reply, DelayedReply):
            reply.then(answered)
        else:
            answered(reply)

    # ---- upkeep

    def expire(self) -> None:
        """O3. Offsets of a group that is not Empty stay; whatever goes is a commit of nothing."""
        groups = {group.group_id: group for group in self.node.groups.machines()}
        before = {name: (group.state, dict(group.offsets)) for name, group in groups.items()}
        if "g" in groups and not groups["g"].offsets:
            return  # it would end, and its generations begin again
        self.node.groups.expire_offsets(RETENTION_MS)
        self._tick_queue.pop(0)()  # these few groups are one slice
        for name, (state, offsets) in before.items():
            expired = offsets.keys() - groups[name].offsets.keys()
            assert not expired or state is GroupState.EMPTY, f"{name} lost {expired} while {state.value}"
            for _, partition in sorted(expired):
                self.trace.began("commit", name, partition, -1, self.now_ms)
                self.log_line(f"the offset of {name}-{partition} expires")

    def compact(self) -> None:
        for index in range(SHARDS):
            if self.offsets[index].offline is None:
                self.log(index).compact(self.now_ms, force=True)

    def every(self, period_ms: int, call: Callable[[], None]) -> None:
        def fire() -> None:
            call()
            self.at(period_ms, fire)

        self.at(period_ms, fire)

    # ---- the run

    def play(self) -> None:
        for client in self.clients:
            self.at(self.soon(2_000), client.begin)
        self.every(EXPIRE_EVERY_MS, self.expire)
        self.every(7_000, self.compact)
        self.every(1_000, self.check_waiting)
        if self.random.random() < 0.5:
            self.every(13_000, self.outage)
        self.run(RUN_MS)
        self._end()

    def _end(self) -> None:
        """All clients stop; each pending request is answered in time (G4); the log replays to the same state (G5)."""
        self.crashes = 0.0
        for client in self.clients:
            client.end()
        self.run(AFTERWARDS_MS)
        assert not self.pending, f"never answered: {self.pending}"
        self.check_replay()
        self.compact()
        self.check_replay()
        self.trace.check()

    def check_waiting(self) -> None:
        late = [request for request, since_ms in self.pending.values() if self.now_ms - since_ms > WAIT_MS_MAX]
        assert not late, f"not answered in time: {late}"

    def check_replay(self) -> None:
        """G5."""
        for shard in self.node.groups.shards:
            assert shard.state is ShardState.READY
            log, replay = self.log(shard.index), Replay(self.node.groups.hosting, dict[str, Group]())
            while not replay.advance(log, log.log_end_offset):
                pass
            assert _hard(replay.machines) == _hard(shard.machines)


def _hard(groups: dict[str, Group]) -> dict[str, Any]:
    """What outlives a crash. A group of which nothing does may be known or not."""
    hard = {name: (group.hard, group.generation, group.offsets) for name, group in groups.items()}
    return {name: value for name, value in hard.items() if value[0] is not None or value[2]}
