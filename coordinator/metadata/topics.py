"""The cluster's topics: an image in memory for readers; every change is written to the metadata store first.

Laws
    T1  The image follows the store: a change is in the store before a reader sees it.
    T2  A topic's id is drawn once, and never given to another topic, not even to a later one of the same name.
    T3  Each listener is called once for every change, in order, after the image has it.
    T4  Two names that differ only in '.' and '_' never both exist.
    T7  Changes of one topic happen one after the other, each on top of the one before; those of several topics share
        the store's writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from rota.coordinator.metadata import eager, placement, znodes
from rota.coordinator.metadata.changes import Change, ConfigChanged, PartitionsAdded, TopicCreated, TopicDeleted
from rota.coordinator.metadata.placement import PARTITIONS_PER_REQUEST_MAX, Assignment
from rota.coordinator.metadata.store import Create, Delete, NodeExists, NoNode, Op, Set, Store
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, TRANSACTION_STATE, PartitionState, Refusal, Topic
from rota.coordinator.metadata.topic_names import collision_key, refuse_collision, refuse_name
from rota.protocol.errors import ErrorCode

PLACED_PER_SLICE = 64  # partitions whose logs are opened before the loop has its turn

__all__ = ["CONSUMER_OFFSETS", "TRANSACTION_STATE", "PartitionState", "Refusal", "Topic", "Topics"]


class Topics:
    """Reads are synchronous; changes are coroutines, which do not wait on a store in memory (`eager.start`).

    `fresh_uuid` draws 16 random bytes. `brokers` are the live ones, on which new partitions may be placed.
    """

    def __init__(
        self, store: Store, *, broker_id: int, fresh_uuid: Callable[[], bytes], cluster_id: str | None = None
    ) -> None:
        self.store = store
        self.broker_id = broker_id
        self.brokers: tuple[int, ...] = (broker_id,)
        self.cluster_id = cluster_id or ""  # of a new cluster; an old one's is in the store
        self._fresh_uuid = fresh_uuid
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._by_collision_key: dict[str, set[str]] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self._preparers: list[Callable[[Topic, Sequence[PartitionState]], Iterator[None]]] = []
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # ---- reading

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def names(self) -> list[str]:
        """Sorted."""
        return sorted(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` after every change (TopicCreated, PartitionsAdded, TopicDeleted, ConfigChanged)."""
        self._listeners.append(listener)

    def before_partitions_added(self, prepare: Callable[[Topic, Sequence[PartitionState]], Iterator[None]]) -> None:
        """Call `prepare` for new partitions once they are durable and before the image has them.

        It works while it is iterated, one partition a step, so that thousands of them do not block the loop.
        """
        self._preparers.append(prepare)

    # ---- changing

    async def load(self) -> None:
        """Fill the image from the store; create the store's first nodes if it is new. Calls no listener."""
        missing: list[Op] = [Create(path) for path in znodes.PERSISTENT if await self.store.exists(path) is None]
        if await self.store.exists(znodes.CLUSTER_ID) is None:
            fresh = self.cluster_id or znodes.uuid_text(self._fresh_uuid())
            missing.append(Create(znodes.CLUSTER_ID, znodes.cluster_node(fresh)))
        if missing:
            await self.store.commit(missing)
        data, _ = await self.store.get(znodes.CLUSTER_ID)
        self.cluster_id = znodes.read_cluster(data)
        for name in await self.store.children(znodes.TOPICS):
            self._remember(await self._read(name))

    async def bump_leader_epochs(self) -> None:
        """After a crash: a new leader epoch for each partition that this broker leads. Raises StoreFailed.

        The tail of a log may be lost then, and its offsets be given again. A client that read the lost records asks
        where their epoch ended (KIP-320), and learns that the log was cut. The topics share the store's writes.
        """
        await eager.gather(self._bump_leader_epochs(topic) for topic in self)

    async def _bump_leader_epochs(self, topic: Topic) -> None:
        states = tuple(self._next_epoch(state) for state in topic.partitions)
        changed = [after for before, after in zip(topic.partitions, states, strict=True) if after != before]
        await self.store.commit(
            [Set(znodes.state_path(topic.name, state.index), znodes.state_node(state)) for state in changed]
        )
        self._remember(replace(topic, partitions=states))

    async def bump_leader_epoch(self, name: str, index: int) -> int:
        """The same for one partition, whose log was recovered while the broker ran. Returns the epoch in force.

        0 when the partition does not exist any more. Raises StoreFailed.
        """
        async with self._lock(name):
            topic = self.get(name)
            if topic is None or index >= len(topic.partitions):
                return 0
            state = self._next_epoch(topic.partitions[index])
            await self.store.commit([Set(znodes.state_path(name, index), znodes.state_node(state))])
            states = (*topic.partitions[:index], state, *topic.partitions[index + 1 :])
            self._remember(replace(topic, partitions=states))
            return state.leader_epoch

    def _next_epoch(self, state: PartitionState) -> PartitionState:
        return replace(state, leader_epoch=state.leader_epoch + 1) if state.leader == self.broker_id else state

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
            refusal = _refuse_counts(partitions, replication)
        if refusal is not None:
            return refusal
        states = (
            placement.assign_round_robin(self.brokers, 0, partitions, replication)
            if assignment is None
            else placement.assign_manually(self.brokers, 0, assignment)
        )
        if isinstance(states, Refusal):
            return _cannot_replicate(states, replication)
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
        ops: list[Op] = [
            Create(znodes.config_path(topic.name), znodes.config_node(topic.configs)),
            Create(znodes.topic_path(topic.name), znodes.topic_node(topic)),
            Create(znodes.partitions_path(topic.name)),
            *_create_states(topic.name, topic.partitions),
        ]
        try:
            await self.store.commit(ops)
        except NodeExists:
            return _exists(topic.name)
        await self._place(topic, topic.partitions)
        self._remember(topic)
        self._notify(TopicCreated(topic))
        return topic

    async def delete(self, name: str) -> Topic | Refusal:
        """Delete a topic; return it as it was. Raises StoreFailed."""
        async with self._lock(name):
            topic = self._by_name.get(name)
            return unknown_topic() if topic is None else await self._delete(topic)

    async def _delete(self, topic: Topic) -> Topic | Refusal:
        name, ops = topic.name, list[Op]()
        for state in topic.partitions:
            ops += Delete(znodes.state_path(name, state.index)), Delete(znodes.partition_path(name, state.index))
        for path in (znodes.partitions_path(name), znodes.topic_path(name), znodes.config_path(name)):
            ops.append(Delete(path))
        try:
            await self.store.commit(ops)
        except NoNode:
            return unknown_topic()
        self._forget(topic)
        self._notify(TopicDeleted(topic))
        return topic

    def plan_partitions(
        self, name: str, count: int, assignment: Sequence[Sequence[int]] | None = None
    ) -> tuple[PartitionState, ...] | Refusal:
        """The partitions that `add_partitions` would add to make `count` in all; changes nothing."""
        topic = self._by_name.get(name)
        if topic is None:
            return unknown_topic()
        before = len(topic.partitions)
        refusal = _refuse_growth(name, before, count, assignment)
        if refusal is not None:
            return refusal
        if assignment is None:
            return placement.assign_round_robin(self.brokers, before, count - before, topic.replication_factor)
        placed = [(before + step, replicas) for step, replicas in enumerate(assignment)]
        return placement.assign_manually(self.brokers, before, placed, topic.replication_factor)

    async def add_partitions(
        self, name: str, count: int, assignment: Sequence[Sequence[int]] | None = None
    ) -> Topic | Refusal:
        """Grow the topic to `count` partitions in all. Raises StoreFailed."""
        async with self._lock(name):
            added = self.plan_partitions(name, count, assignment)
            return added if isinstance(added, Refusal) else await self._grow(self._by_name[name], added)

    async def _grow(self, topic: Topic, added: tuple[PartitionState, ...]) -> Topic | Refusal:
        name, grown = topic.name, replace(topic, partitions=topic.partitions + added)
        node: Op = Set(znodes.topic_path(name), znodes.topic_node(grown))
        try:
            await self.store.commit([node, *_create_states(name, added)])
        except (NoNode, NodeExists):
            return unknown_topic()
        await self._place(grown, added)
        self._remember(grown)
        self._notify(PartitionsAdded(grown, len(topic.partitions)))
        return grown

    async def alter_config(self, name: str, configs: Mapping[str, str]) -> Topic | Refusal:
        """Replace all of the topic's own configs; the caller checked them. Raises StoreFailed."""
        return await self.update_config(name, lambda _: configs)

    async def update_config(
        self, name: str, update: Callable[[Mapping[str, str]], Mapping[str, str] | Refusal]
    ) -> Topic | Refusal:
        """Replace the topic's own configs with what `update` makes of them; it checks them, too. Raises StoreFailed."""
        async with self._lock(name):
            topic = self._by_name.get(name)
            if topic is None:
                return unknown_topic()
            configs = update(topic.configs)
            return configs if isinstance(configs, Refusal) else await self._set_config(topic, configs)

    async def _set_config(self, topic: Topic, configs: Mapping[str, str]) -> Topic | Refusal:
        try:
            await self.store.set(znodes.config_path(topic.name), znodes.config_node(configs))
        except NoNode:
            return unknown_topic()
        changed = replace(topic, configs=dict(configs))
        self._remember(changed)
        self._notify(ConfigChanged(changed))
        return changed

    # ---- inside

    async def _place(self, topic: Topic, states: Sequence[PartitionState]) -> None:
        for prepare in self._preparers:
            for count, _ in enumerate(prepare(topic, states), 1):
                if count % PLACED_PER_SLICE == 0:
                    await asyncio.sleep(0)

    def _lock(self, name: str) -> asyncio.Lock:
        """T7, T4. One lock for all names that could not exist together; it is forgotten when nobody holds it."""
        lock = self._locks.get(collision_key(name))
        if lock is None:
            lock = self._locks[collision_key(name)] = asyncio.Lock()
        return lock

    async def _read(self, name: str) -> Topic:
        data, _ = await self.store.get(znodes.topic_path(name))
        topic_id, replicas = znodes.read_topic(data)
        states = []
        for index in sorted(replicas):
            data, _ = await self.store.get(znodes.state_path(name, index))
            states.append(znodes.read_state(data, index, replicas[index]))
        data, _ = await self.store.get(znodes.config_path(name))
        return Topic(name=name, topic_id=topic_id, partitions=tuple(states), configs=znodes.read_config(data))

    def _refuse_new(self, name: str) -> Refusal | None:
        refusal = refuse_name(name)
        if refusal is not None:
            return refusal
        if name in self._by_name:
            return _exists(name)
        return refuse_collision(name, sorted(self._by_collision_key.get(collision_key(name), ())))

    def _remember(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        self._by_collision_key.setdefault(collision_key(topic.name), set()).add(topic.name)

    def _forget(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        colliding = self._by_collision_key[collision_key(topic.name)]
        colliding.discard(topic.name)
        if not colliding:
            del self._by_collision_key[collision_key(topic.name)]

    def _notify(self, change: Change) -> None:
        for listener in list(self._listeners):
            listener(change)


def unknown_topic() -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


def _exists(name: str) -> Refusal:
    return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _create_states(name: str, states: Sequence[PartitionState]) -> list[Op]:
    ops: list[Op] = []
    for state in states:
        ops.append(Create(znodes.partition_path(name, state.index)))
        ops.append(Create(znodes.state_path(name, state.index), znodes.state_node(state)))
    return ops


def _refuse_counts(partitions: int, replication: int) -> Refusal | None:
    if replication < 1:
        why = "Replication factor must be larger than 0, or -1 to use the default value."
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, why)
    if partitions < 1:
        return Refusal(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        return too_many()
    return None


def too_many() -> Refusal:
    why = f"Unable to perform excessively large batch operation: at most {PARTITIONS_PER_REQUEST_MAX} partitions."
    return Refusal(ErrorCode.POLICY_VIOLATION, why)


def _cannot_replicate(refusal: Refusal, replication: int) -> Refusal:
    if refusal.code is not ErrorCode.INVALID_REPLICATION_FACTOR:
        return refusal
    return replace(refusal, message=f"Unable to replicate the partition {replication} time(s): {refusal.message}")


def _refuse_growth(name: str, before: int, count: int, assignment: Sequence[Sequence[int]] | None) -> Refusal | None:
    if count == before:
        return Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {before} partition(s).")
    if count < before:
        why = f"The topic {name} currently has {before} partition(s); {count} would not be an increase."
        return Refusal(ErrorCode.INVALID_PARTITIONS, why)
    if count - before > PARTITIONS_PER_REQUEST_MAX:
        return too_many()
    if assignment is not None and len(assignment) != count - before:
        why = f"Attempted to add {count - before} additional partition(s), but only {len(assignment)} assignment(s) "
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why + "were specified.")
    return None
