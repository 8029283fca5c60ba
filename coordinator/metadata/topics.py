"""Changes of the cluster's topics: each is written to the metadata store first, then read back into the image.

Laws
    T1  The image follows the store: a change is in the store before a reader sees it.
    T2  A topic's id is drawn once, and never given to another topic, also of the same name.
    T4  Two names that differ only in '.' and '_' never both exist.
    T7  Changes of one topic happen one after the other, each on top of the one before; those of several topics share
        the store's writes.
    T9  A change of a node that another broker has changed meanwhile is made on top of that one, or refused.
    T12 A topic that exists, and of which a node is missing or cannot be read, stays in the image as it was: only a
        deletion removes its logs. A broker that does not know it yet does not start.
    T11 A change of many partitions is written, read, opened and removed in slices, between which the loop does its
        other work; the image has the whole change, or nothing of it, when a listener or a reader sees it.

The file is longer than 400 lines because one class owns the order of a topic's changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

import structlog

from rota.coordinator.metadata import eager_tasks, placement, topic_nodes, topic_reader, znodes
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.identity import confirm_cluster, open_cluster
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.placement import Assignment, start_of
from rota.coordinator.metadata.resource_configs import ResourceConfigs, read_configs
from rota.coordinator.metadata.store import BadNode, BadVersion, NodeExists, NoNode, Set, Store, Watch
from rota.coordinator.metadata.topic import (
    CONSUMER_OFFSETS,
    INTERNAL,
    TRANSACTION_STATE,
    PartitionState,
    Refusal,
    Topic,
)
from rota.coordinator.metadata.topic_names import (
    colliding_internal_topics,
    collision_key,
    refuse_collision,
    refuse_name,
    refuse_other_case,
)
from rota.coordinator.metadata.topic_refusals import (
    cannot_replicate,
    is_changing,
    refuse_counts,
    refuse_growth,
    too_large,
    topic_exists,
    unknown_topic,
    unknown_topic_id,
)
from rota.coordinator.metadata.topic_writer import RETRIES_MAX, create_nodes, delete_nodes, grow_nodes

OPENED_PER_SLICE = 8  # partitions whose logs are opened or deleted in one turn of the loop: about 5 ms

log = structlog.get_logger("rota.metadata")

__all__ = ["CONSUMER_OFFSETS", "TRANSACTION_STATE", "PartitionState", "Refusal", "Topic", "Topics"]


class Topics(Image):
    """The image, and its changes: coroutines, which do not wait on a store in memory (`eager_tasks.start`).

    `fresh_uuid` draws 16 random bytes. `watch` is set on every node that is read, for a store that other brokers change
    as well; without it this broker is the only one, and lives.
    """

    def __init__(
        self,
        store: Store,
        *,
        broker_id: int,
        fresh_uuid: Callable[[], bytes],
        cluster_id: str | None = None,
        is_creation_allowed: bool = True,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(broker_id)
        self.store = store
        self.cluster_id, self._is_creation_allowed = (
            cluster_id or "",
            is_creation_allowed,
        )  # of the folder, until `load` has read the store
        self._fresh_uuid, self._watch = fresh_uuid, watch
        self.ignores_case = False  # A11: whether names may not differ only in upper and lower case
        if watch is None:
            self.brokers = {broker_id: BrokerRegistration(broker_id=broker_id)}
            self.controller_id = broker_id
        self.configs = ResourceConfigs(self, store, watch)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._refresh_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # ---- reading the store

    async def load(self) -> None:
        """Fill the image from the store; create the store's first nodes if it is new. Raises StoreFailed."""
        self.cluster_id = await open_cluster(
            self.store,
            self.cluster_id,
            lambda: znodes.uuid_text(self._fresh_uuid()),
            is_creation_allowed=self._is_creation_allowed,
        )
        await self.refresh_all()

    async def refresh_all(self, *, keeps_unreadable: bool = False) -> None:
        """Read every config and topic again. Raises StoreFailed, also when the store is of another cluster (CI1).

        With `keeps_unreadable` a topic that cannot be read does not keep the others from it (T12).
        """
        await confirm_cluster(self.store, self.cluster_id)
        await self.configs.refresh_all()
        names = await self.store.children(znodes.TOPICS, self._watch)
        refresh = self._refresh_or_keep if keeps_unreadable else self.refresh
        await eager_tasks.gather(refresh(name) for name in sorted({*names, *self.names()}))

    async def _refresh_or_keep(self, name: str) -> None:
        try:
            await self.refresh(name)
        except znodes.UnreadableNode as why:
            log.warning("Topic stays as it was", topic=name, reason=str(why))

    async def refresh(self, name: str, stale: Collection[int] | None = None) -> None:
        """Read a topic into the image. `stale`: of the partitions known already read only these. Raises StoreFailed."""
        lock = self._refresh_locks.get(name)
        if lock is None:
            lock = self._refresh_locks[name] = asyncio.Lock()
        async with lock:
            topic = await topic_reader.read(self.store, name, self, self._watch, stale)
            await eager_tasks.run_in_slices(self.replace_topic(name, topic), OPENED_PER_SLICE)  # T11

    # ---- changing

    async def bump_leader_epochs(self) -> None:
        """After a crash: a new leader epoch for each partition that this broker leads. Raises StoreFailed.

        The tail of a log may be lost then, and its offsets be given again. A client that read the lost records asks
        where their epoch ended (KIP-320), and learns that the log was cut. The topics share the store's writes.
        """
        led = ((topic, [s for s in topic.partitions if s.leader == self.broker_id]) for topic in self)
        await eager_tasks.gather(self._set_states(topic, states) for topic, states in led)

    async def bump_leader_epoch(self, name: str, index: int) -> int:
        """The same for one partition, whose log was recovered while the broker ran. Returns the epoch in force.

        0 when the partition does not exist any more. Raises StoreFailed.
        """
        async with self._lock(name):
            topic, state = self.get(name), self.partition(name, index)
            if topic is None or state is None:
                return 0
            if state.leader == self.broker_id:
                await self._set_states(topic, [state])
            state = self.partition(name, index)
            return 0 if state is None else state.leader_epoch

    async def _set_states(self, topic: Topic, states: Sequence[PartitionState]) -> None:
        """Write these states with the next leader epoch."""
        after = [replace(state, leader_epoch=state.leader_epoch + 1, version=state.version + 1) for state in states]
        path = partial(znodes.state_path, topic.name)
        try:
            writes = [Set(path(state.index), znodes.state_node(state), state.version - 1) for state in after]
            await self.store.commit([topic_nodes.is_same(topic), *writes])
        except (BadVersion, NoNode):  # T9: another broker has changed them, and their epochs with them
            await self.refresh(topic.name)
            return
        self.apply_states(topic.topic_id, after)

    async def _check_registered(self, epochs: Mapping[int, int], brokers: Collection[int]) -> None:
        """Raises NoNode when one of these brokers does not have the registration of that epoch any more."""
        for broker_id in sorted(epochs.keys() & brokers):
            stat = await self.store.exists(znodes.broker_path(broker_id))
            if stat is None or stat.created != epochs[broker_id]:
                raise NoNode(znodes.broker_path(broker_id))

    async def change_isr(
        self,
        name: str,
        index: int,
        leader_epoch: int,
        isr: Collection[int],
        lacking: Collection[int] = (),
        epochs: Mapping[int, int] | None = None,
    ) -> bool:
        """Write the ISR that this broker requests as the leader in `leader_epoch` (KIP-497). Raises StoreFailed.

        `lacking` have lost committed records, and are not in the ELR either. `epochs` are the registrations in which
        brokers fetched what lets them into the ISR: one that has registered since is refused (KIP-903).

        False when this broker is not the leader of that epoch any more, or when the state or the topic's node, which
        has the replicas, has changed meanwhile, also if that was after the write: the image has the later ISR (RE2).
        """
        topic, state = self.get(name), self.partition(name, index)
        if topic is None or state is None or (state.leader, state.leader_epoch) != (self.broker_id, leader_epoch):
            return False
        members = tuple(replica for replica in state.replicas if replica in isr)
        after = state.with_isr(members, self.min_insync_replicas(topic), lacking)
        try:
            await self._check_registered(epochs or {}, set(members).difference(state.isr))
            write = Set(znodes.state_path(name, index), znodes.state_node(after), state.version)
            await self.store.commit([topic_nodes.is_same(topic), topic_nodes.fence(name, topic.version), write])
        except (BadVersion, NoNode):
            await self.refresh(name, (index,))
            return False
        written = replace(after, version=state.version + 1)
        self.apply_states(topic.topic_id, [written])
        return self.partition(name, index) == written

    def plan(
        self,
        name: str,
        partitions: int = 1,
        replication: int = 1,
        *,
        assignment: Assignment | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> Topic | Refusal:
        """The topic that `create` would make; changes nothing. `configs` were checked by the caller."""
        refusal = self._refuse_new(name)
        if refusal is None and assignment is None:
            refusal = refuse_counts(partitions, replication)
        if refusal is not None:
            return refusal
        states = (
            placement.assign_round_robin(
                self.brokers, 0, partitions, replication, start=start_of(name), absent=self._absent(replication)
            )
            if assignment is None
            else self._assign_manually(0, assignment)
        )
        if isinstance(states, Refusal):
            return cannot_replicate(states, replication)
        return Topic(name=name, topic_id=self._fresh_uuid(), partitions=states, configs=dict(configs or {}))

    async def create(
        self,
        name: str,
        partitions: int = 1,
        replication: int = 1,
        *,
        assignment: Assignment | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> Topic | Refusal:
        """Create a topic, with `partitions` times `replication` or as `assignment` places it. Raises StoreFailed."""
        topic = self.plan(name, partitions, replication, assignment=assignment, configs=configs)
        return topic if isinstance(topic, Refusal) else await self.add(topic)

    async def add(self, topic: Topic) -> Topic | Refusal:
        """Create the topic that `plan` returned. Raises StoreFailed."""
        async with self._lock(topic.name):
            refusal = self._refuse_new(topic.name)
            return refusal if refusal is not None else await self._add(topic)

    async def _add(self, topic: Topic) -> Topic | Refusal:
        try:
            await create_nodes(self.store, topic)
        except NodeExists:
            await self.refresh(topic.name)
            return topic_exists(topic.name)
        except (NoNode, BadVersion):
            return is_changing(topic.name)  # another broker creates or deletes it, too
        except BadNode as error:
            return too_large(error)
        await self.refresh(topic.name)
        return self.by_id(topic.topic_id) or topic

    async def delete(self, name: str, topic_id: bytes | None = None) -> Topic | Refusal:
        """Delete a topic, with `topic_id` only the one of that id; return it as it was. Raises StoreFailed."""
        async with self._lock(name):
            if topic_id is not None:
                await self.refresh(name, ())  # T2: the name may belong to a later topic
            topic = self.get(name) if topic_id is None else self.by_id(topic_id)
            if topic is None:
                return unknown_topic() if topic_id is None else unknown_topic_id()
            return await self._delete(topic)

    async def _delete(self, topic: Topic) -> Topic | Refusal:
        try:
            await delete_nodes(self.store, topic.name)
        except NoNode:
            await self.refresh(topic.name)
            return unknown_topic()
        await self.refresh(topic.name)
        return topic

    def plan_partitions(
        self, name: str, count: int, assignment: Sequence[Sequence[int]] | None = None
    ) -> tuple[PartitionState, ...] | Refusal:
        """The partitions that `add_partitions` would add to make `count` in all; changes nothing."""
        topic = self._by_name.get(name)
        if topic is None:
            return unknown_topic()
        before = len(topic.partitions)
        refusal = refuse_growth(name, before, count, assignment)
        if refusal is not None:
            return refusal
        if assignment is None:
            replication, start = topic.replication_factor, start_of(name)
            return placement.assign_round_robin(
                self.brokers, before, count - before, replication, start=start, absent=self._absent(replication)
            )
        placed = [(before + step, replicas) for step, replicas in enumerate(assignment)]
        return self._assign_manually(before, placed, topic.replication_factor)

    def _assign_manually(
        self, first: int, assignment: Assignment, replication: int | None = None
    ) -> tuple[PartitionState, ...] | Refusal:
        absent = self._absent(0, {replica for _, replicas in assignment for replica in replicas})
        return placement.assign_manually(self.brokers, first, assignment, replication, absent=absent)

    def _absent(self, count: int, named: Collection[int] = ()) -> frozenset[int]:
        """The brokers that are not live and have replicas, if they are needed: for so many replicas, or by name."""
        if count <= len(self.brokers) and self.brokers.keys() >= set(named):
            return frozenset()
        return self.absent_brokers()

    async def add_partitions(
        self, name: str, count: int, assignment: Sequence[Sequence[int]] | None = None
    ) -> Topic | Refusal:
        """Grow the topic to `count` partitions in all. Raises StoreFailed."""
        async with self._lock(name):
            if name in self._by_name:
                await self.refresh(name, ())  # T2: the node of a later topic of that name may have the same version
            added = self.plan_partitions(name, count, assignment)
            return added if isinstance(added, Refusal) else await self._grow(self._by_name[name], added)

    async def _grow(self, topic: Topic, added: tuple[PartitionState, ...]) -> Topic | Refusal:
        grown = replace(topic, partitions=topic.partitions + added)
        try:
            await grow_nodes(self.store, grown, added)
        except (NoNode, BadVersion):
            await self.refresh(topic.name)
            current = self.by_id(topic.topic_id)
            return unknown_topic() if current is None else is_changing(topic.name)
        except BadNode as error:
            return too_large(error)
        await self.refresh(topic.name, ())
        return self.by_id(topic.topic_id) or grown

    async def alter_config(self, name: str, configs: Mapping[str, str]) -> Topic | Refusal:
        """Replace all of the topic's own configs; the caller checked them. Raises StoreFailed."""
        return await self.update_config(name, lambda _: configs)

    async def update_config(
        self, name: str, update: Callable[[Mapping[str, str]], Mapping[str, str] | Refusal]
    ) -> Topic | Refusal:
        """Replace the topic's own configs with what `update` makes of them; it checks them, too. Raises StoreFailed."""
        async with self._lock(name):
            for _ in range(RETRIES_MAX):
                try:
                    return await self._update_config(name, update)
                except BadVersion:
                    continue  # T9: another broker was faster
                except BadNode as error:
                    return too_large(error)
                except NoNode:
                    await self.refresh(name)  # T2: it is deleted, and perhaps created again
                    if name not in self:
                        return unknown_topic()
            return is_changing(name)

    async def _update_config(
        self, name: str, update: Callable[[Mapping[str, str]], Mapping[str, str] | Refusal]
    ) -> Topic | Refusal:
        topic = self.get(name)
        if topic is None:
            return unknown_topic()
        path = znodes.config_path(name)
        data, stat = await self.store.get(path)
        configs = update(read_configs("topics", name, data))
        if isinstance(configs, Refusal):
            return configs
        await self.store.commit([topic_nodes.is_same(topic), Set(path, znodes.config_node(configs), stat.version)])
        await self.refresh(name, ())
        return self.get(name) or replace(topic, configs=dict(configs))

    # ---- inside

    def _lock(self, name: str) -> asyncio.Lock:
        """T7, T4, A11. One lock for all names that may collide; it is removed when no task holds it."""
        key = collision_key(name).lower()
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    def _refuse_new(self, name: str) -> Refusal | None:
        refusal = refuse_name(name)
        if refusal is not None:
            return refusal
        if name in self._by_name:
            return topic_exists(name)
        other_case = refuse_other_case(name, (*self._by_name, *INTERNAL)) if self.ignores_case else None
        return other_case or refuse_collision(name, (*self.colliding_names(name), *colliding_internal_topics(name)))
