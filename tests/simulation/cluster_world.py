"""Three real brokers on one metadata store, and real clients, in one loop where only the seed decides.

Brokers with everything in them (controller, failure detector, replication, groups, logs on a disk), producers and
consumers are the real ones, on links and datagrams in memory and in virtual time; the store is the shared tree. While
the run lasts brokers are killed and frozen out, started again and stopped in order; hosts cannot reach each other, in
one direction or in both; datagrams are lost and doubled; sessions of the store are cut off, expire, and lose answers;
disks lie about what they have synced, clocks are an hour off, and an administrator creates, moves and deletes topics.
Then everything heals, and whoever is left reads all that was acknowledged.

Laws, looked at whenever the metadata changes and again and again meanwhile
    ELR1 Whoever is in the ELR is not in the ISR, and the ISR is smaller than min.insync.replicas.
    R1   In one leader epoch one broker leads a partition, in one registration; the epoch only grows.
    L1   Below the high watermark all replicas that are in the ISR have the same records, in the end all replicas.
    L1, PD1, G1 for clients as in `client_history`; G1, G2, G3, O1, O2 as in `history`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from unittest import mock

from tests.chaos.line import Line
from tests.simulation.client_actors import Writer
from tests.simulation.client_world import LogLine, World, silent
from tests.simulation.clients import Loner
from tests.simulation.cluster_admin import Administrator
from tests.simulation.group_client import GroupClient
from tests.simulation.loop import SimLoop, simulate
from tests.simulation.member import Member, Trace
from tests.simulation.store_session import StoreSession

from rota.client.types import TopicPartition
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.log.boot import BOOT_FILE
from rota.coordinator.log.files import FileSystem
from rota.coordinator.membership import service as swim_service
from rota.coordinator.metadata import topic_nodes, znodes
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import WatchEvent
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.metadata.tree_session import TreeSession
from rota.coordinator.network import listener
from rota.coordinator.scheduling.clock import Clock
from rota.coordinator.storage import Disk
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

BROKERS = (1, 2, 3)
PORT = 9092
RUN_S = 20.0
HEALING_S = 120.0
SESSION_S = 6.0  # of the store: how long it takes a broker that is gone for gone
WRITERS, READERS = 2, 2
W = TypeVar("W", bound="ClusterWorld")


class Disks:
    """The disks of all machines: which part of each file has been synced. Some lie: they sync nothing, now and then."""

    def __init__(self, random: Random) -> None:
        self.random, self._synced = random, dict[str, int]()
        self._lie_often = random.choice((0.0, 0.0, 0.3))

    def fsync(self, descriptor: int) -> None:
        if self.random.random() < self._lie_often:
            return
        self._synced[os.readlink(f"/proc/self/fd/{descriptor}")] = os.fstat(descriptor).st_size

    def lose_unsynced(self, folder: Path) -> None:
        """Of each log the end that was not synced is lost, or some of it."""
        for path in sorted(folder.rglob("*.log")):
            size = path.stat().st_size
            synced = min(self._synced.get(str(path), 0), size)
            os.truncate(path, self.random.choice((synced, synced, self.random.randint(synced, size))))
        if (folder / BOOT_FILE).exists():
            (folder / BOOT_FILE).write_text("before the machine lost its power")


class BrokerProcess:
    """One broker and its folder. `life` names its present process."""

    def __init__(self, world: ClusterWorld, broker_id: int, folder: Path) -> None:
        self.world, self.broker_id, self.folder = world, broker_id, folder
        self.host, self.port, self.lives = f"127.0.0.{broker_id}", PORT, 0
        self.skew_s = world.random.choice((0.0, 0.0, -3600.0, 3600.0))  # of its time of day
        self.broker: Broker | None = None
        self.session: StoreSession | None = None
        self.system: FileSystem | None = None  # None: the real one

    @property
    def is_up(self) -> bool:
        return self.broker is not None

    async def start(self) -> None:
        """Start a process. One that cannot start is tried again."""
        self.lives += 1
        name = f"b{self.broker_id}.{self.lives}"
        self.world.loop.network.hosts[name] = self.host
        await self.world.begin(self._start, name)

    async def _start(self) -> None:
        world = self.world
        settings = {
            "node.id": str(self.broker_id),
            "listeners": f"PLAINTEXT://{self.host}:{PORT}",
            "log.dirs": str(self.folder),
            "group.initial.rebalance.delay.ms": str(world.delay_ms),
            "offsets.topic.num.partitions": "3",
            "replica.lag.time.max.ms": "3000",
            "min.insync.replicas": str(world.min_isr),
            "zookeeper.session.timeout.ms": str(round(SESSION_S * 1000)),
            **world.settings,
        }
        config = BrokerConfig(settings)
        session = self.session = StoreSession(world.shared, world.loop)
        session.commits_take_time = world.commits_take_time

        async def open_store() -> StoreSession:
            return session

        clock = Clock(lambda: world.loop.wall() + self.skew_s, world.loop.time)
        broker = Broker(config, clock=clock, open_store=open_store)
        assert isinstance(broker.storage, Disk)
        broker.storage._system = self.system
        await broker.start()
        self.broker = broker

    async def crash(self, *, is_silent: bool, loses_power: bool = False) -> None:
        """kill -9: the disk keeps what the process has written. A machine without power loses what was not synced."""
        broker, session = self.broker, self.session
        self.broker = self.session = None
        loop = self.world.loop
        await loop.crash(f"b{self.broker_id}.{self.lives}", is_silent=is_silent)
        for link in loop.network.open_links():
            if link.address[0] == self.host:
                link.silence() if is_silent else link.cut()
        loop.network.close_of(self.host)
        if broker is not None:
            broker.storage.abandon()
        if loses_power:
            self.world.disks.lose_unsynced(self.folder)
        if session is not None:
            session.hold_events()
            loop.call_later(SESSION_S, lambda: self.world.end(session))

    async def stop(self) -> None:
        """SIGTERM."""
        broker, self.broker = self.broker, None
        if broker is not None:
            await self.world.begin(broker.stop, f"b{self.broker_id}.{self.lives}")


class ClusterWorld(World):
    """`play(seed)`."""

    commits_take_time = False  # of the store

    settings: dict[str, str] = {}  # of its brokers, beside those of all

    def __init__(self, loop: SimLoop, seed: int, log_line: LogLine, folder: Path) -> None:
        super().__init__(loop, seed, log_line)
        self.shared = SharedTree()
        self.min_isr = self.random.choice((1, 2))
        self.brokers = {broker: BrokerProcess(self, broker, folder / str(broker)) for broker in BROKERS}
        self.leaders: dict[tuple[str, int, int], tuple[int, int]] = {}  # (topic, partition, epoch) -> leadership
        self.epochs: dict[tuple[str, int], int] = {}
        self.elections = 0
        self.trace = Trace()
        self._network, self._sessions = asyncio.Lock(), asyncio.Lock()  # held while one of their faults lasts
        self.disks = Disks(Random(f"disks {seed}"))
        self.violations: list[AssertionError] = []
        self._watching = TreeSession(self.shared)
        self.admin = Administrator(self, Random(f"administrator {seed}"))
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{process.host}:{PORT}" for process in self.brokers.values())

    async def play(self) -> None:
        try:
            await self._run()
        finally:
            if self.violations:  # whatever came of it
                raise self.violations[0]
        assert not self.loop.failures, self.loop.failures

    async def _run(self) -> None:
        for process in self.brokers.values():
            process.folder.mkdir()
        await asyncio.gather(*(process.start() for process in self.brokers.values()))
        await self._create_topic()
        watching = asyncio.ensure_future(self._watch())
        clients = self._begin_clients()
        await self._inject_faults()
        await self._all_well()
        await self._within(HEALING_S, asyncio.gather(*clients), self._left)
        await self._check_clients()
        self._check_ended()
        await self._caught_up()
        assert not watching.done(), f"nobody watched any more: {watching.exception()!r}"
        watching.cancel()
        await self._check_logs()
        for process in self.brokers.values():
            await process.stop()
        await self.shared.close()

    def _begin_clients(self) -> list[asyncio.Future[None]]:
        """Whoever acts in this run; each ends soon after it is over."""
        writers = [self.begin(self._writer().act) for _ in range(WRITERS)]
        readers = [asyncio.ensure_future(self._members(place)) for place in range(READERS)]
        self.group_clients = self._group_clients()
        return [*writers, *readers, *(self.begin(client.act) for client in self.group_clients)]

    async def _check_clients(self) -> None:
        """The laws of what the clients saw; replicas and logs are checked later."""
        await asyncio.wait_for(self.begin(self.group_clients[0].read_offsets), HEALING_S)
        self.trace.check()

    def _writer(self) -> Writer:
        writer = Writer(self, self.name("w"), self._fork())
        writer.config = replace(writer.config, acks="all")
        return writer

    def _group_clients(self) -> list[GroupClient]:
        """Two that commit without a group, three members of another one."""
        members: list[Member] = [Loner("loners", self.trace, self._fork()) for _ in range(2)]
        members += [Member("h", self.trace, self._fork()) for _ in range(3)]
        return [GroupClient(self, member, self._fork()) for member in members]

    async def _create_topic(self) -> None:
        line = await Line.open(f"{self.brokers[1].host}:{PORT}")
        topic = CreatableTopic(name=self.topic, num_partitions=len(self.partitions), replication_factor=3)
        while (
            (await line.send_request(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)).topics[0].error_code
        ):
            await asyncio.sleep(0.1)  # not all brokers are known yet
        await line.close()

    def end(self, session: TreeSession) -> None:
        """The store ends the session of a process that is gone."""
        task = self.loop.create_task(session.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    # ---- faults

    async def _inject_faults(self) -> None:
        """Processes, network and store have their faults at the same time."""
        processes = [self._kill, self._kill, self._cut_power, self._cut_power_and_kill, self._restart]
        network = [self._part, self._part, self._lose_datagrams, self._slow]
        administrator = [self.admin.create, self.admin.create, self.admin.delete, self.admin.reassign]
        await asyncio.gather(
            self._faults(administrator, asyncio.Lock()),
            self._faults(processes, asyncio.Lock()),
            self._faults(network, self._network),
            self._faults([self._session], self._sessions),
        )

    async def _faults(self, kinds: list[Callable[[], Coroutine[Any, Any, None]]], lock: asyncio.Lock) -> None:
        often = self.random.choice((1.0, 3.0, 8.0))
        while self.loop.time() < RUN_S and not self.violations:
            await asyncio.sleep(self.random.expovariate(1 / often))
            async with lock:
                await self.random.choice(kinds)()

    def _up(self) -> list[BrokerProcess]:
        return [process for process in self.brokers.values() if process.is_up]

    async def _kill(self) -> None:
        """One broker, sometimes all."""
        up = self._up()
        victims = up if self.random.random() < 0.1 else [self.random.choice(up)]
        is_silent = self.random.random() < 0.3
        self.log_line(
            f"brokers {[victim.broker_id for victim in victims]} are killed {'silently' if is_silent else ''}"
        )
        for victim in victims:
            await victim.crash(is_silent=is_silent)
        await asyncio.sleep(self.random.choice((0.0, 0.5, 3.0, 10.0)))
        for victim in victims:
            self.log_line(f"broker {victim.broker_id} starts")
            await victim.start()

    async def _cut_power(self) -> None:
        """One machine loses its power, and what it had not synced. Nothing else happens until that was noticed.

        Not while it has records that no other broker needs to have: these would be lost for good, as with Kafka.
        """
        async with self._network, self._sessions:
            await self._cut_power_of(self.random.choice(self._up()))

    async def _cut_power_of(self, victim: BrokerProcess) -> None:
        others = {process.broker_id for process in self._up() if process is not victim}
        if any(others.isdisjoint({*state.isr, *state.elr}) for state in self._all_states()):
            return
        self.log_line(f"broker {victim.broker_id} loses power")
        await victim.crash(is_silent=True, loses_power=True)
        await asyncio.sleep(self.random.choice((0.0, 0.3, 3.0)))
        self.log_line(f"broker {victim.broker_id} starts")
        await victim.start()
        await asyncio.sleep(5.0)

    async def _cut_power_and_kill(self) -> None:
        """CM5. One machine loses its power and comes back, another broker is killed; the third one has all."""
        async with self._network, self._sessions:
            up = self._up()
            if len(up) < len(BROKERS):
                return
            victim, other, third = self.random.sample(up, len(up))
            if any(third.broker_id not in state.isr for state in self._all_states()):
                return
            self.log_line(f"broker {victim.broker_id} loses power, broker {other.broker_id} is killed")
            await victim.crash(is_silent=self.random.random() < 0.5, loses_power=True)
            await asyncio.sleep(self.random.choice((0.0, 0.3, 1.0)))
            starting = asyncio.ensure_future(victim.start())
            await asyncio.sleep(self.random.choice((0.0, 0.01, 0.1, 0.5)))
            await other.crash(is_silent=self.random.random() < 0.5)
            await starting
            await asyncio.sleep(self.random.choice((0.5, 3.0)))
            await other.start()
            await asyncio.sleep(5.0)

    async def _restart(self) -> None:
        victim = self.random.choice(self._up())
        self.log_line(f"broker {victim.broker_id} is stopped")
        await victim.stop()
        await asyncio.sleep(self.random.choice((0.0, 1.0)))
        self.log_line(f"broker {victim.broker_id} starts")
        await victim.start()

    async def _part(self) -> None:
        """A broker cannot reach another one, or nobody; clients and the store reach it."""
        item, both = self.random.choice(BROKERS), self.random.random() < 0.5
        others = [broker for broker in BROKERS if broker != item]
        others = others if self.random.random() < 0.5 else others[:1]
        self.log_line(f"broker {item} is cut off from {others} {'' if both else 'one way'}")
        for other in others:
            pair = self.brokers[item].host, self.brokers[other].host
            self.loop.network.block(*(pair if self.random.random() < 0.5 else pair[::-1]), both=both)
        await asyncio.sleep(self.random.choice((0.3, 2.0, 8.0)))
        self.log_line("no link is blocked")
        self.loop.network.blocked.clear()

    async def _lose_datagrams(self) -> None:
        self.loop.network.datagrams.lost = self.random.choice((0.0, 0.1, 0.5))
        self.loop.network.datagrams.doubled = self.random.choice((0.0, 0.2))

    async def _session(self) -> None:
        """The store is out of reach, slow to tell, ends a session, or loses an answer."""
        up = self._up()
        if not up:
            return
        process = self.random.choice(up)
        session, kind = process.session, self.random.choice(("suspend", "expire", "hold", "lose", "lose"))
        if session is None:
            return
        self.log_line(f"session of broker {process.broker_id}: {kind}")
        if kind == "suspend":
            session.do(session.suspend)
            await asyncio.sleep(self.random.choice((0.5, 3.0)))
            if self.random.random() < 0.3:
                await session.perform(session.expire())
            session.do(session.resume)
        elif kind == "expire":
            await session.perform(session.expire())
        elif kind == "hold":
            session.hold_events()
            await asyncio.sleep(self.random.choice((0.2, 1.0)))
            session.do(session.release_events)
        else:
            session.lose_next_commit(applied=self.random.random() < 0.5)

    async def _all_well(self) -> None:
        self._heal_network()
        for process in self.brokers.values():
            if not process.is_up:
                await process.start()
        self.is_over = True

    def _heal_network(self) -> None:
        self.log_line("everything heals")
        network = self.loop.network
        network.blocked.clear()
        network.delay_s, network.datagrams.lost, network.datagrams.doubled = 0.002, 0.0, 0.0

    # ---- laws

    def _check_nothing_left(self, name: str) -> None:
        if name[1:].partition(".")[0].isdecimal() and not name.startswith("b"):
            super()._check_nothing_left(name)

    async def _watch(self) -> None:
        """R1, at each change of a state node; who leads, again and again."""
        for partition in self.partitions:
            self._changed(WatchEvent(znodes.state_path(partition.topic, partition.partition), None))  # type: ignore[arg-type]
        while True:
            await asyncio.sleep(0.25)
            self._note(self._check_leaders)

    def _changed(self, event: WatchEvent) -> None:
        self.shared.tree.sessions[self._watching.session_id].watch_node(event.path, self._changed)
        node = self.shared.tree.nodes.get(event.path)
        if node is None:
            return
        _, _, _, name, _, index, _ = event.path.split("/")
        blank = PartitionState(index=int(index), leader=-1, replicas=BROKERS, isr=())
        self._note(lambda: self._check_state(name, znodes.read_state(node.data, node.version, blank)))

    def _note(self, check: Callable[[], None]) -> None:
        """A law that is broken ends the run, wherever that was seen."""
        try:
            check()
        except AssertionError as violation:
            self.violations.append(violation)

    def _check_state(self, name: str, state: PartitionState) -> None:
        key, leadership = (name, state.index), (state.leader, state.leader_broker_epoch)
        assert state.leader_epoch >= self.epochs.get(key, 0), f"R1: the leader epoch of {key} went back: {state}"
        if state.leader_epoch > self.epochs.get(key, -1):
            self.elections += 1
            elr = f" elr {state.elr}" if state.elr else ""
            self.log_line(
                f"{name}-{state.index}: leader {state.leader} isr {state.isr}{elr} epoch {state.leader_epoch}"
            )
        self.epochs[key] = state.leader_epoch
        known = self.leaders.setdefault((*key, state.leader_epoch), leadership)
        assert known == leadership, f"R1: two leaders of {key} in epoch {state.leader_epoch}: {known}, {leadership}"
        assert state.isr, f"R2: the ISR of {key} is empty"
        assert state.leader in (-1, *state.isr), f"R1: the leader of {key} is not in the ISR: {state}"
        assert not set(state.elr) & set(state.isr), f"ELR1: a broker is in ISR and ELR of {key}: {state}"
        assert not state.elr or len(state.isr) < self.min_isr, f"ELR1: the ISR of {key} needs no ELR: {state}"

    def _check_leaders(self) -> None:
        """R1, R3: whoever acts as a leader was elected in that epoch, in its present registration."""
        for process in self._up():
            assert process.broker is not None
            for partition in process.broker.partitions.all():
                if not partition.is_leader:
                    continue
                elected = self.leaders.get((partition.topic, partition.index, partition.leader_epoch))
                if elected is not None:
                    acting = process.broker_id, process.broker.topics.broker_epoch
                    assert elected == acting, f"R3: {acting} leads {partition}, not {elected}"

    async def _caught_up(self) -> None:
        """Whatever happened: soon after it is over each replica is in the ISR."""
        ends = self.loop.time() + HEALING_S
        while behind := [str(state) for state in self._states() if len(state.isr) < len(BROKERS)]:
            assert self.loop.time() < ends, f"not in the ISR {HEALING_S} s after everything healed: {behind}"
            await asyncio.sleep(1.0)
        while unsettled := list(self.admin.unsettled()):
            assert self.loop.time() < ends, f"RA1: not settled {HEALING_S} s after everything healed: {unsettled}"
            await asyncio.sleep(1.0)
        await asyncio.sleep(1.0)  # the last high watermark has come
        self.admin.check_images()

    def _states(self) -> list[PartitionState]:
        """Of the clients' topic, as the store has them."""
        return [state for name, state in self.named_states() if name == self.topic]

    def _all_states(self) -> list[PartitionState]:
        return [state for _, state in self.named_states()]

    def named_states(self) -> Iterator[tuple[str, PartitionState]]:
        nodes = self.shared.tree.nodes
        for topic in sorted(nodes[znodes.TOPICS].children):
            if nodes[znodes.topic_path(topic)].data == topic_nodes.INCOMPLETE:
                continue
            for state in znodes.read_topic(nodes[znodes.topic_path(topic)].data)[1]:
                node = nodes[znodes.state_path(topic, state.index)]
                yield topic, znodes.read_state(node.data, node.version, state)

    async def _check_logs(self) -> None:
        """L1: in the end each replica has what the leader has, and what was acknowledged is in it."""
        logs = await self._logs()
        self.history.check_log(logs)
        self.log_line(f"{sum(map(len, logs.values()))} records, {self.elections} elections")

    async def _logs(self) -> dict[TopicPartition, dict[int, bytes]]:
        return {each: await self._check_replicas(each.topic, each.partition) for each in self.partitions}

    async def _check_replicas(self, topic: str, index: int) -> dict[int, bytes]:
        """L1: all replicas have the same records; return them by offset."""
        replicas = {}
        for process in self.brokers.values():
            assert process.broker is not None
            replica = process.broker.partitions.get(topic, index)
            assert replica is not None
            replicas[process.broker_id] = await self._records(replica)
        first, *others = replicas.values()
        for other in others:
            assert other == first, f"L1: replicas of {topic}-{index} differ: {_difference(first, other)}"
        return first

    async def _records(self, replica: Any) -> dict[int, bytes]:
        from rota.protocol.records.batch import headers
        from rota.protocol.records.record import read_records

        found: dict[int, bytes] = {}
        offset = replica.log.log_start_offset
        while offset < replica.log.log_end_offset:
            data = bytes(replica.log.read(offset, 1 << 20))
            for position, header in headers(data, cut=True):
                found |= {record.offset: record.value or b"" for record in read_records(data, position)}
                offset = header.next_offset
        return found


def _difference(item: dict[int, bytes], other: dict[int, bytes]) -> list[Any]:
    offsets = sorted(item.keys() | other.keys())
    return [(at, item.get(at), other.get(at)) for at in offsets if item.get(at) != other.get(at)][:5]


def play(seed: int, log_line: LogLine = silent) -> ClusterWorld:
    """The whole run of a seed, and its laws."""
    return play_in(ClusterWorld, seed, log_line)


def play_in(kind: type[W], seed: int, log_line: LogLine = silent) -> W:
    """The same in a world of that kind."""
    worlds: list[W] = []
    chance = Random(f"chance {seed}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rota-sim-")))

        async def main(loop: SimLoop) -> None:
            worlds.append(kind(loop, seed, log_line, folder))
            with mock.patch.object(os, "fsync", worlds[0].disks.fsync):
                await worlds[0].play()

        stack.enter_context(_without_collector())
        stack.enter_context(mock.patch.object(os, "urandom", chance.randbytes))
        stack.enter_context(mock.patch.object(swim_service, "Random", side_effect=lambda: Random(chance.random())))
        stack.enter_context(mock.patch.object(listener, "open_sockets", _sockets))
        simulate(seed, main)
    return worlds[0]


@contextmanager
def _without_collector() -> Iterator[None]:
    """A crashed process leaves open transports in cycles: collecting them, whenever that is, would close them."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _sockets(endpoint: Any) -> list[Any]:
    from tests.simulation.loop import FakeSocket

    return [FakeSocket((endpoint.host, endpoint.port))]
