"""A whole cluster of the pure machines in a deterministic world, some 110 ms for a run of six seconds.

Three brokers with partitions, logs in memory, groups, failure detectors and controllers, around one store: the real
machines, without sockets, threads, asyncio and wire. `cluster_world` runs whole brokers, which takes fifty times as
long. Messages are lost, late, doubled and overtake each other; hosts cannot reach each other, in one direction or in
both; brokers are killed, stopped, frozen and lose power, with torn tails and disks that lie; their clocks are wrong and
jump; sessions of the store are cut off, end, and lose answers. Then everything heals, and all go on within `HEALED_MS`:
producers, replicas, and the members of the group, stable again (G6). The laws: `machines_laws`.

    make sim SEED=N                            play one seed, among those of all other worlds, and print it
    python -m tests.simulation.machines_world FIRST LAST     play many, and print those that fail
"""

from __future__ import annotations

import gc
import itertools
import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final
from unittest import mock

import structlog
from tests.simulation.clients import Loner
from tests.simulation.machines_broker import DATA, Life, new_disk
from tests.simulation.machines_clients import GroupClient, Producer
from tests.simulation.machines_faults import Faults
from tests.simulation.machines_laws import EVERYTHING_BYTES, Laws
from tests.simulation.machines_loop import Exchange, Heap, Network, Resume, Wait
from tests.simulation.machines_store import StoreServer
from tests.simulation.member import Member, Trace

from rota.coordinator.api import join_group
from rota.coordinator.controller.reassignment import is_under_way
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata import topic_nodes, znodes
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, PartitionState, Topic

BROKERS: Final = (1, 2, 3)
TOPICS: Final = (DATA, CONSUMER_OFFSETS)
HEALED_MS: Final = 30_000
SESSION_MS: Final = 1_500  # of members
LOOK_MS: Final = 100

LogLine = Callable[[str], None]


def silent(line: str) -> None:
    pass


class MachinesWorld:
    """`play` plays the run of a seed; it raises AssertionError when a law is broken."""

    ALLOW_UNCLEAN: ClassVar[frozenset[str]] = frozenset()  # topics
    REASSIGNS: ClassVar[bool] = False  # whether replicas change
    RUN_MS: ClassVar[int] = 6_000
    LAG_MS: ClassVar[int] = 1_500  # replica.lag.time.max.ms
    CHECKS_GROUP: ClassVar[bool] = True  # G6: the members go on after everything healed
    FAULTS: ClassVar[type[Faults]] = Faults
    LOG: ClassVar[Callable[..., MemoryLog]] = MemoryLog

    def __init__(self, seed: int, log_line: LogLine = silent) -> None:
        self.heap, self._log_line, self.is_over, self.is_settled = Heap(seed), log_line, False, False
        random = self.random = self.heap.random
        self.min_isr = random.choice((1, 2, 2))
        self.min_isr_min = self.min_isr_max = self.min_isr  # of all that there were
        self.flushes = random.random() < 0.3
        self.sends_high_watermark = random.random() < 0.5
        self.lives: dict[int, Life | None] = dict.fromkeys(BROKERS)
        self.unreachable_hosts = set[int]()  # of dead brokers: nothing refuses a connection
        self.topics = {name: self._topic(name, number) for number, name in enumerate(TOPICS)}
        self.network, self.laws = Network(self.heap), Laws(self)
        self._states: dict[tuple[str, int], tuple[bytes, PartitionState]] = {}
        self.store = StoreServer(self.heap, self.laws.changed)
        for topic in self.topics.values():
            for ops in topic_nodes.creation(topic):
                self.store.commit(0, ops)
        self.disks = {broker: new_disk(self.LOG, flushes=self.flushes, min_isr=self.min_isr) for broker in BROKERS}
        self.flushed: dict[tuple[int, str], int] = {}
        self.trace, self.stale_reads = Trace(), 0
        self.producers = [Producer(self, f"p{number}", 100 + number) for number in range(2)]
        self.clients = [GroupClient(self, member, f"c{at}") for at, member in enumerate(self._members())]
        self.faults = self.FAULTS(self)

    def _topic(self, name: str, number: int) -> Topic:
        replicas = tuple(self.random.sample(BROKERS, len(BROKERS)))
        state = PartitionState(index=0, leader=-1, replicas=replicas, isr=replicas)
        return Topic(name=name, topic_id=bytes([number + 1]) * 16, partitions=(state,))

    def _members(self) -> list[Member]:
        random, trace = self.random, self.trace
        members = [Member("g", trace, random, session_ms=SESSION_MS) for _ in range(2)]
        members.append(Member("g", trace, random, session_ms=SESSION_MS, instance="i"))
        return [*members, Loner("loners", trace, random)]

    def log_line(self, line: str) -> None:
        self._log_line(f"{self.heap.now_ms:>8.1f} {line}")

    # ---- the run

    def play(self) -> MachinesWorld:
        with mock.patch.object(join_group, "uuid4", itertools.count(1).__next__):
            self._play()
        return self

    def _play(self) -> None:
        for broker in BROKERS:
            self.start(broker)
        for client in (*self.producers, *self.clients):
            self.heap.after(self.random.uniform(0, 400), client.act)
        self.faults.begin(self.RUN_MS)
        self._run(self.RUN_MS)
        self.is_over = True
        self.log_line("everything heals")
        self.faults.heal()
        self._check_progress()
        for client in self.clients:
            client.member.claim(self.heap.now_ms)
        self.trace.check()

    def _run(self, ms: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Let time pass; look now and then whether it is over."""
        until_ms = self.heap.now_ms + ms
        while self.heap.now_ms < until_ms and not is_over():
            self.heap.run(min(self.heap.now_ms + LOOK_MS, until_ms), self.laws.touched, self.laws.after_event)

    def _check_progress(self) -> None:
        """Every batch is acknowledged, each replica in the ISR, the offsets can be read again, the group is stable."""
        read = [False]
        self.is_settled = not self.CHECKS_GROUP
        self._read_offsets(read)
        self._check_replicas(read)
        if self.CHECKS_GROUP:
            self._check_group()
        self.is_settled = True
        self._run(HEALED_MS, lambda: not self._apart())
        assert not self._apart(), f"L1: the replicas end apart: {self._apart()}"

    def _check_replicas(self, read: list[bool]) -> None:
        self._run(HEALED_MS, lambda: read[0] and self._are_replicas_settled())
        states = {name: str(self.state(name)) for name in TOPICS}
        assert read[0], f"no offset can be read {HEALED_MS} ms after everything healed: {states}"
        assert self._are_replicas_settled(), f"not settled {HEALED_MS} ms after everything healed: {states}"

    def _check_group(self) -> None:
        self._run(HEALED_MS, self._is_group_stable)
        members = [(each.state, each.generation, each.owned) for each in self._group()]
        assert self._is_group_stable(), f"G6: the group is not stable {HEALED_MS} ms after everything healed: {members}"

    def _apart(self) -> dict[str, list[int]]:
        """High watermarks and log ends of the partitions in which they differ."""
        replicas = {name: [life.partitions[name] for life in self.up() if name in life.partitions] for name in TOPICS}
        ends = {
            name: [end for each in found for end in (each.state.high_watermark, each.log.log_end_offset)]
            for name, found in replicas.items()
        }
        return {name: found for name, found in ends.items() if len(set(found)) > 1}

    def _read_offsets(self, read: list[bool]) -> None:
        reader = GroupClient(self, Loner("g", self.trace, self.random), "reader")
        request = reader.member.fetch(self.heap.now_ms)

        def received(answer: Any) -> None:
            reader.member.received(request, answer, self.heap.now_ms)
            read[0] = answer is not None and not answer.error_code
            if not read[0]:
                self.heap.after(200, lambda: self._read_offsets(read))

        reader.send_request(self.find(CONSUMER_OFFSETS)[0], request, 7, received)

    def _group(self) -> list[Member]:
        return [client.member for client in self.clients if not isinstance(client.member, Loner)]

    def _is_group_stable(self) -> bool:
        """All members are in one generation, and own all partitions."""
        members = self._group()
        owned = sorted(partition for member in members for partition in member.owned)
        is_in_one = len({(member.state, member.generation) for member in members}) == 1
        return is_in_one and members[0].state == "inside" and owned == list(range(members[0].partitions))

    def _are_replicas_settled(self) -> bool:
        if len(self.up()) < len(BROKERS) or any(producer.in_flight for producer in self.producers):
            return False
        states = [self.state(name) for name in TOPICS]
        if any(disk.failed for disk in self.disks.values()):
            return False
        is_whole = all(
            len(state.isr) == len(state.replicas) and state.leader != -1 and not is_under_way(state) for state in states
        )
        return is_whole and all(life.has_joined for life in self.up())

    # ---- brokers

    def up(self) -> list[Life]:
        return [life for life in self.lives.values() if life is not None]

    def start(self, broker: int) -> None:
        if self.lives[broker] is None:
            self.unreachable_hosts.discard(broker)
            life = self.lives[broker] = Life(self, broker, self.disks[broker])
            life.start()

    def end(self, life: Life) -> None:
        """The process is gone, by itself or by a kill; the connections of its clients end."""
        if life.is_dead:
            return
        life.tasks.stop()
        life.disk.end_truncations(self.random)
        self.lives[life.broker_id] = None
        life.store.disconnect()
        exchanges, life.exchanges = life.exchanges, {}
        for exchange in exchanges:
            exchange.disconnect()
        if self.is_over:
            self.start(life.broker_id)

    def kill(self, life: Life, *, is_silent: bool = False) -> None:
        """SIGKILL; silently: a host that is gone, so that the others only hear nothing more."""
        if is_silent:
            self.unreachable_hosts.add(life.broker_id)
            life.exchanges.clear()
        self.end(life)

    def cut_power(self, life: Life) -> None:
        """What was not synced is lost, but for a torn tail."""
        disk = life.disk
        self.kill(life, is_silent=True)
        disk.has_possible_data_loss = True
        for log in disk.logs.values():
            kept = self.random.choice((0, self.random.randrange(400), EVERYTHING_BYTES))
            flushed = 0 if disk.has_lied else log.log_end_offset - log.unflushed_messages
            self.laws.crash(log, kept, flushed=flushed)

    def state(self, name: str) -> PartitionState:
        """The partition as the store has it."""
        node = self.store.tree.nodes[znodes.state_path(name, 0)]
        return self.read_state(name, node.data, node.version)

    def read_state(self, name: str, data: bytes, version: int) -> PartitionState:
        """The state in the node of a partition. A version of it is decoded once, whoever reads it."""
        known = self._states.get((name, version))
        if known is None or known[0] != data:
            known = data, znodes.read_state(data, version, self._placement(name))
            self._states[name, version] = known
        return known[1]

    def _placement(self, name: str) -> PartitionState:
        """The partition with its replicas. They change with the state only, which `Laws` reads first, at once."""
        if not self.REASSIGNS:
            return self.topics[name].partitions[0]
        _, partitions = znodes.read_topic(self.store.tree.nodes[znodes.topic_path(name)].data)
        return next(partitions)

    # ---- messages

    def find(self, name: str) -> tuple[int, int]:
        """The leader of a partition and its epoch, as some broker knows it; any broker while it knows none."""
        known = [life.image.states[name] for life in self.up() if name in life.image.states]
        state = self.random.choice(known) if known else None
        if state is None or state.leader == -1:
            return self.random.choice(BROKERS), -1
        return state.leader, state.leader_epoch

    def request(
        self,
        source: int,
        to: int,
        serve: Callable[[Life, Callable[[Any], None]], None],
        received: Callable[[Any], None],
        timeout_ms: float,
    ) -> None:
        """One request on a connection of its own; `received` gets the answer, or None when there will be none."""
        life = self.lives[to]
        exchange = Exchange(self.network, source, to, life, received)
        self.heap.after(timeout_ms, exchange.receive)
        if life is not None:
            life.exchanges[exchange] = None
            self.network.send(source, to, partial(life.run, partial(life.serve, serve, exchange.reply)))
        elif to not in self.unreachable_hosts and (source, to) not in self.network.blocked:
            exchange.disconnect()

    def send_request(
        self,
        life: Life,
        to: int,
        serve: Callable[[Life, Callable[[Any], None]], None],
        timeout_ms: float = 900.0,
    ) -> Wait:
        """The same for a broker's coroutine."""

        def begin(resume: Resume) -> None:
            def received(answer: Any) -> None:
                life.run(partial(resume, answer, None))

            self.request(life.broker_id, to, serve, received, timeout_ms)

        return Wait(begin)

    def send_datagram(self, source: int, to: int, raw: bytes) -> None:
        def arrive() -> None:
            life = self.lives[to]
            if life is not None:
                life.run(partial(life.datagram, raw, source))

        self.network.send(source, to, arrive, is_datagram=True)


def play(seed: int, log_line: LogLine = silent) -> MachinesWorld:
    """The whole run of a seed, and its laws."""
    return MachinesWorld(seed, log_line).play()


def main(first: int, last: int) -> int:
    """Play these seeds; return how many failed."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    gc.freeze()
    gc.disable()
    failed = 0
    for seed in range(first, last + 1):
        try:
            play(seed)
        except Exception as violation:  # noqa: BLE001  # an error of the code is one, too
            failed += 1
            print(f"seed {seed}: {violation!r}", flush=True)
        gc.collect()
    return failed


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]), int(sys.argv[2])), 1))
