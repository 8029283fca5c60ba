"""Several brokers in one process that exchange real Fetch requests over the loopback; the test is the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Self

from tests.unit.coordinator.api.data_world import batch, produce_request

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.produce import produce
from rota.coordinator.api.routes import routes
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.config.topic import TopicConfig
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.metadata.producer_ids import ProducerIds
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.network.connections import Connections
from rota.coordinator.network.listener import Listener
from rota.coordinator.replica.durability import Durability
from rota.coordinator.replica.fetch_sessions import FetchSessions
from rota.coordinator.replica.isr_changes import Epochs, IsrChanges
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.replication.replication import Replication
from rota.coordinator.scheduling.clock import Clock
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.tick_queue import TickQueue
from rota.coordinator.scheduling.timers import Timers
from rota.coordinator.storage import Disk, Memory
from rota.protocol.messages.produce import PartitionProduceResponse
from rota.protocol.records.record import read_records

WAIT_SECONDS = 20


class Member:
    """One broker, without groups and without a metadata store of its own."""

    def __init__(self, cluster: Cluster, broker_id: int, folder: Path | None, properties: Mapping[str, str]) -> None:
        self.cluster, self.broker_id, self.folder = cluster, broker_id, folder
        self.properties = {
            "node.id": str(broker_id),
            "replica.lag.time.max.ms": "400",
            "replica.fetch.wait.max.ms": "400",
            **properties,
        }
        self.unreachable: list[int] = []
        self.truncated: list[Partition] = []
        self.port = 0

    async def start(self) -> None:
        config = BrokerConfig(self.properties)
        clock = Clock()
        self.timers, self.durability = Timers(clock.now_ms), Durability()
        self.storage: Disk | Memory = Memory()
        if self.folder is not None:
            self.storage = Disk(self.folder, node_id=self.broker_id, wall_ms=clock.wall_ms)
        self.storage.open()
        self.storage.identify("cluster")
        store = EmbeddedStore()
        self.image = Topics(store, broker_id=self.broker_id, fresh_uuid=lambda: bytes(16))
        self.isr_changes = IsrChanges(self.cluster.change_isr, clock.now_ms)
        self.partitions = Partitions(
            self.image,
            self.storage.open_log,
            lambda topic: self._log_config(topic, config),
            timers=self.timers,
            flush_worker=self.durability,
            remove_log=self.storage.remove_log,
            isr_writer=self.isr_changes,
            lag_ms_max=config.replica_lag_time_max_ms,
            now_ms=clock.now_ms,
            on_truncated=self.truncated.append,
        )
        self.node = Node(
            config=config,
            topics=self.image,
            partitions=self.partitions,
            groups=None,  # type: ignore[arg-type]  # no API that is used here asks for groups
            transactions=None,  # type: ignore[arg-type]  # nor for transactions
            verify_transaction=None,  # type: ignore[arg-type]
            producer_ids=ProducerIds(store, broker_id=self.broker_id),
            fetch_sessions=FetchSessions(),
            timers=self.timers,
            durability=self.durability,
            now_ms=clock.now_ms,
            wall_ms=clock.wall_ms,
        )
        self.replication = Replication(
            self.image,
            self.partitions,
            config,
            timers=self.timers,
            now_ms=clock.now_ms,
            on_unreachable=self.unreachable.append,
        )
        loop = asyncio.get_running_loop()
        connections = Connections(self.node, routes(), TickQueue(loop.call_soon, loop.call_exception_handler))
        self.listener = Listener(connections, self.timers, clock.now_ms)
        (bound,) = await self.listener.start((Endpoint("PLAINTEXT", "127.0.0.1", self.port),))
        self.port = bound.port
        self.replication.start()

    async def stop(self) -> None:
        await self.replication.stop()
        await self.isr_changes.stop()
        await self.listener.stop(0)
        await self.durability.drained()
        self.durability.close()
        self.timers.stop()
        self.partitions.close()
        self.storage.close()

    def partition(self, index: int = 0) -> Partition:
        partition = self.partitions.get("t", index)
        assert partition is not None
        return partition

    def values(self, index: int = 0) -> list[bytes | None]:
        """The values of all records in the log, committed or not."""
        log, values = self.partition(index).log, list[bytes | None]()
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            records = read_records(log.read(offset, 1))
            values += [record.value for record in records if record.offset >= offset]
            offset = records[-1].offset + 1
        return values

    async def produce(
        self, *values: bytes, acks: int = -1, index: int = 0, timeout_ms: int = 10_000, **how: Any
    ) -> PartitionProduceResponse:
        request = produce_request(batch(*values, **how), acks=acks, index=index)
        request.timeout_ms = timeout_ms
        reply = produce(self.node, Call(9, "test", "/127.0.0.1", "127.0.0.1", self.port), request)
        if isinstance(reply, DelayedReply):
            waiter = asyncio.get_running_loop().create_future()
            reply.then(waiter.set_result)
            reply = await waiter
        assert reply is not None
        response = reply.responses[0].partition_responses[0]
        assert isinstance(response, PartitionProduceResponse)
        return response

    def _log_config(self, topic: Topic, config: BrokerConfig) -> LogConfig:
        return TopicConfig(dict(topic.configs), config).log_config()


class Cluster:
    """`async with Cluster(3) as cluster`: brokers 1 to 3 and the topic "t", led by broker 1."""

    def __init__(
        self,
        size: int = 3,
        partitions: int = 1,
        folder: Path | None = None,
        configs: Mapping[str, str] | None = None,
        **properties: str,
    ) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        ids = range(1, size + 1)
        folders = {broker: None if folder is None else folder / str(broker) for broker in ids}
        self.members = {broker: Member(self, broker, folders[broker], named) for broker in ids}
        self.up: set[int] = set()
        self._epochs = count(100)
        self.registrations: dict[int, BrokerRegistration] = {}
        replicas = tuple(ids)
        states = tuple(
            PartitionState(index=index, leader=1, replicas=replicas, isr=replicas) for index in range(partitions)
        )
        self.topic = Topic(name="t", topic_id=bytes(15) + b"\1", partitions=states, configs=dict(configs or {}))
        self.versions = count(1)

    async def __aenter__(self) -> Self:
        for broker in self.members:
            await self.start(broker)
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker in list(self.up):
            await self.stop(broker)

    def __getitem__(self, broker: int) -> Member:
        return self.members[broker]

    # ---- the controller

    async def start(self, broker: int) -> None:
        """Start it; it is registered, with a new epoch, and knows what the others know."""
        member = self.members[broker]
        if member.folder is not None:
            member.folder.mkdir(parents=True, exist_ok=True)
        await member.start()
        self.up.add(broker)
        self.registrations[broker] = BrokerRegistration(
            broker_id=broker,
            epoch=next(self._epochs),
            endpoints=(Endpoint("PLAINTEXT", "127.0.0.1", member.port),),
            rack=f"rack{broker}",
        )
        self.topic = replace(
            self.topic, partitions=tuple(self._led_again(state, broker) for state in self.topic.partitions)
        )
        self.announce()

    def _led_again(self, state: PartitionState, broker: int) -> PartitionState:
        """A broker that has registered again leads what it led in a new epoch."""
        if state.leader != broker:
            return state
        epoch = state.leader_epoch + (state.leader_broker_epoch >= 0)
        broker_epoch = self.registrations[broker].epoch
        return replace(state, leader_epoch=epoch, leader_broker_epoch=broker_epoch, version=next(self.versions))

    async def stop(self, broker: int) -> None:
        """Stop it, without a word to the others."""
        self.up.discard(broker)
        await self.members[broker].stop()

    def remove_broker(self, broker: int) -> None:
        """Its registration has ended."""
        self.registrations.pop(broker, None)
        self.announce()

    def elect(
        self, leader: int, isr: tuple[int, ...] | None = None, index: int = 0, *, to: set[int] | None = None
    ) -> None:
        """A new leader, in a new epoch; only the brokers `to` hear of it, by default all."""
        old = self.state(index)
        new_isr = old.isr if isr is None else isr
        registration = self.registrations.get(leader)
        broker_epoch = -1 if registration is None else registration.epoch
        epoch = old.leader_epoch + 1
        self.set_state(
            replace(old, leader=leader, isr=new_isr, leader_epoch=epoch, leader_broker_epoch=broker_epoch), to
        )

    def state(self, index: int = 0) -> PartitionState:
        return self.topic.partitions[index]

    def set_state(self, state: PartitionState, to: set[int] | None = None) -> None:
        state = replace(state, version=next(self.versions))
        states = list(self.topic.partitions)
        states[state.index] = state
        self.topic = replace(self.topic, partitions=tuple(states))
        self.announce(to)

    def announce(self, to: set[int] | None = None) -> None:
        for broker in self.up if to is None else self.up & to:
            image = self.members[broker].image
            image.apply_brokers(self.registrations)
            own = self.registrations.get(broker)
            image.apply_registration(NOT_REGISTERED if own is None else own.epoch)
            image.apply_topic(self.topic)

    async def change_isr(
        self, name: str, index: int, leader_epoch: int, isr: tuple[int, ...], lacking: frozenset[int], epochs: Epochs
    ) -> bool:
        await asyncio.sleep(0)
        state = self.state(index)
        if state.leader_epoch != leader_epoch:
            return False
        self.set_state(replace(state, isr=isr))
        return True

    # ---- waiting

    async def until(self, condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Wait until that is so; the assertion says what is not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    await asyncio.sleep(0.002)
        assert condition()

    async def in_sync(self, *isr: int, index: int = 0) -> None:
        await self.until(lambda: set(self.state(index).isr) == set(isr))

    async def same_logs(self, index: int = 0) -> None:
        """Every broker that is up has the records of the leader, and its high watermark."""

        def bounds(broker: int) -> tuple[int, int, int]:
            partition = self.members[broker].partition(index)
            return partition.log_start_offset, partition.log.log_end_offset, partition.high_watermark

        leader = self.state(index).leader
        await self.until(lambda: all(bounds(broker) == bounds(leader) for broker in self.up))
        assert all(self.members[broker].values(index) == self.members[leader].values(index) for broker in self.up)
