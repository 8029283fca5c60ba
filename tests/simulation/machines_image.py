"""What a simulated broker knows of the store: partitions, registrations; and its own registration and ISR changes.

The surroundings of the machines: they do what `metadata/image_updater`, `metadata/registration`, `replica/isr_changes`
and `Topics.change_isr` do, for topics that are never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rota.coordinator.controller.election import LiveBrokers, without_unclean_replica
from rota.coordinator.metadata import topic_nodes, znodes
from rota.coordinator.metadata.store import (
    BadVersion,
    Check,
    Delete,
    NodeExists,
    NoNode,
    Op,
    SessionState,
    Set,
    StoreError,
    StoreFailed,
    WatchEvent,
)
from rota.coordinator.metadata.topic import PartitionState, Topic, replicated_as
from rota.coordinator.replica.partition import Partition

if TYPE_CHECKING:
    from tests.simulation.machines_broker import Life

NOT_REGISTERED: Final = -1
RETRY_MS: Final = 200


class BrokerImage:
    """`states` by topic (each has one partition), `epochs` of the registrations, `own_epoch` of this broker."""

    def __init__(self, life: Life, topics: Mapping[str, Topic]) -> None:
        self.life, self.topics, self.broker_id = life, topics, life.broker_id
        self.states: dict[str, PartitionState] = {}
        self.epochs: dict[int, int] = {}
        self.own_epoch = NOT_REGISTERED
        self._reads: dict[str, bool] = {}  # parts that are being read: whether to read them once more
        self._is_joining = False

    def topic(self, name: str) -> Topic:
        """The topic with its present state."""
        return replace(self.topics[name], partitions=(self.states[name],))

    def live(self) -> LiveBrokers:
        return LiveBrokers(self.epochs)

    def is_leader(self, state: PartitionState) -> bool:
        return state.leader == self.broker_id and state.leader_broker_epoch == self.own_epoch != NOT_REGISTERED

    def as_it_counts(self, state: PartitionState) -> PartitionState:
        """RE4."""
        return state if state.leader != self.broker_id or self.is_leader(state) else replace(state, leader=-1)

    # ---- reading

    async def load(self) -> None:
        """Read everything. Raises StoreFailed."""
        for name in self.topics:
            await self._read_state(name)
        await self._read_brokers()

    def changed(self, event: WatchEvent) -> None:
        """The watch of every node that is read."""
        if event.path.startswith(znodes.BROKER_IDS):
            self._start("brokers", self._read_brokers)
        else:
            name = event.path.removeprefix(znodes.TOPICS + "/").partition("/")[0]
            self._start(name, partial(self._read_state, name))

    def _start(self, key: str, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if key in self._reads:
            self._reads[key] = True
        else:
            self._reads[key] = False
            self.life.tasks.spawn(self._run(key, read))

    async def _run(self, key: str, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            self._reads[key] = False
            try:
                await read()
            except StoreFailed:
                self._reads[key] = True
                await self.life.tasks.sleep(RETRY_MS)
            if not self._reads[key]:
                del self._reads[key]
                return

    async def _read_state(self, name: str) -> None:
        data, stat = await self.life.store.get(znodes.state_path(name, 0), self.changed)
        self.apply(name, self.life.world.read_state(name, data, stat.version))

    def apply(self, name: str, state: PartitionState) -> None:
        """T8. A state of an earlier version changes nothing."""
        known = self.states.get(name)
        if known is None or state.version > known.version:
            self.states[name] = state
            self.life.state_changed(name)

    async def _read_brokers(self) -> None:
        epochs = {}
        for child in await self.life.store.children(znodes.BROKER_IDS, self.changed):
            with suppress(NoNode):
                _, stat = await self.life.store.get(znodes.broker_path(int(child)), self.changed)
                epochs[int(child)] = stat.created
        self.epochs = epochs
        self.life.brokers_changed()
        if self.own_epoch != NOT_REGISTERED and epochs.get(self.broker_id) != self.own_epoch:
            self.fenced()

    # ---- the own registration

    def session_changed(self, _: SessionState) -> None:
        self.fenced()
        self._start("all", self.load)

    def fenced(self) -> None:
        """CM1. Lead nothing, then join again."""
        self.own_epoch = NOT_REGISTERED
        self.life.registration_changed()
        if self.life.has_joined and not self._is_joining:
            self._is_joining = True
            self.life.tasks.spawn(self._join_again())

    async def _join_again(self) -> None:
        await self.life.retry(self.load)
        await self.life.retry(self.register)
        self._is_joining = False

    async def register(self) -> None:
        """RG1: a registration of an earlier session is replaced. Raises StoreFailed."""
        path, epoch = znodes.broker_path(self.broker_id), NOT_REGISTERED
        while self.epochs.get(self.broker_id, NOT_REGISTERED) != epoch or epoch == NOT_REGISTERED:
            with suppress(NodeExists):
                await self.life.store.create(path, b"{}", ephemeral=True)
            with suppress(NoNode, BadVersion):
                _, stat = await self.life.store.get(path)
                if stat.owner == self.life.store.session_id:
                    epoch = stat.created
                else:
                    await self.life.store.commit([Delete(path, stat.version)])
                    continue
            await self._read_brokers()
        self.own_epoch = epoch
        self.life.registration_changed()

    async def is_registered(self) -> bool:
        """CM2. Whether the store confirms the registration now. Raises StoreFailed."""
        path, epoch = znodes.broker_path(self.broker_id), self.own_epoch
        try:
            stat = await self.life.store.exists(path)
            if stat is None or stat.created != epoch:
                return False
            await self.life.store.commit([Check(path, stat.version)])
        except StoreError:
            return False
        return True

    # ---- writing states

    def write_ops(self, topic: Topic, after: PartitionState, version: int) -> list[Op]:
        """A reassignment changes the node of the topic as well."""
        ops = [topic_nodes.is_same(topic), Set(znodes.state_path(topic.name, 0), znodes.state_node(after), version)]
        if replicated_as(after, topic.partitions[0]) is not after:
            ops.append(Set(znodes.topic_path(topic.name), znodes.topic_node(replace(topic, partitions=(after,)))))
        return ops

    async def write(
        self, name: str, after: PartitionState, *, checks: tuple[Op, ...] = (), version: int | None = None
    ) -> bool:
        """Compare-and-set on the known state; False when it has changed. Raises StoreFailed."""
        known = self.states[name].version if version is None else version
        try:
            await self.life.store.commit([*self.write_ops(self.topic(name), after, known), *checks])
        except (BadVersion, NoNode):
            await self._read_state(name)
            return False
        self.apply(name, replace(after, version=known + 1))
        return True

    async def leave_isrs(self) -> None:
        """CM5, before it registers: its log may lack records. Raises StoreFailed."""
        path = znodes.broker_path(self.broker_id)
        with suppress(NoNode):
            _, stat = await self.life.store.get(path)
            if stat.owner != self.life.store.session_id:
                await self.life.store.commit([Delete(path, stat.version)])
        await self.load()
        for name in self.topics if self.life.disk.has_possible_data_loss else tuple(self.life.disk.failed):
            while (after := self._without_itself(name)) is not None and not await self.write(name, after):
                pass

    def _without_itself(self, name: str) -> PartitionState | None:
        state = self.states[name]
        if self.broker_id not in (*state.isr, *state.elr):
            return state  # written again, so that its earlier life is not added any more (KIP-903)
        return without_unclean_replica(state, self.broker_id, self.live(), self.life.min_isr)

    def change_isr(self, partition: Partition, isr: frozenset[int], lacking: frozenset[int]) -> None:
        """What `IsrChanges.change` does."""
        self.life.tasks.spawn(self._change_isr(partition, isr, lacking, dict(self.epochs)))

    async def _change_isr(
        self, partition: Partition, isr: frozenset[int], lacking: frozenset[int], epochs: dict[int, int]
    ) -> None:
        name, epoch, is_ambiguous = partition.topic, partition.leader_epoch, False
        while partition.is_leader and partition.leader_epoch == epoch:
            try:
                if await self._write_isr(name, epoch, isr, lacking, epochs):
                    partition.isr_changed(epoch, isr, self.life.now_ms())
                    return
                if not is_ambiguous:
                    partition.isr_refused(epoch)
                    return
                present = partition.state.isr
                isr = frozenset(b for b in isr if b in present or self.epochs.get(b) == epochs.get(b))
            except StoreFailed:
                is_ambiguous = True
            await self.life.tasks.sleep(RETRY_MS)

    async def _write_isr(
        self, name: str, epoch: int, isr: frozenset[int], lacking: frozenset[int], epochs: dict[int, int]
    ) -> bool:
        state = self.states[name]
        if (state.leader, state.leader_epoch) != (self.broker_id, epoch):
            return False
        members = tuple(replica for replica in state.replicas if replica in isr)
        after = state.with_isr(members, self.life.min_isr, lacking)
        for broker in sorted(epochs.keys() & set(members).difference(state.isr)):  # KIP-903
            stat = await self.life.store.exists(znodes.broker_path(broker))
            if stat is None or stat.created != epochs[broker]:
                await self._read_state(name)
                return False
        return await self.write(name, after, version=state.version)
