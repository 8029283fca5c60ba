"""The image of the cluster in memory: topics, live brokers and the controller. Pure.

Laws
    T3  Each listener is called once for every change, in order, after the image has it.
    T8  A partition's leader, ISR and epoch only change to those of a later version of its state node, whatever order
        reads and own writes end in.
    T11 Work on the partitions of a change is done one partition a step; the image itself changes in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.changes import (
    BrokersChanged,
    Change,
    ConfigChanged,
    ConfigKind,
    ControllerChanged,
    PartitionsAdded,
    PartitionsChanged,
    ResourceConfigChanged,
    TopicCreated,
    TopicDeleted,
)
from rota.coordinator.metadata.topic import PartitionState, Topic, replicated_as
from rota.coordinator.metadata.topic_names import collision_key

NOT_REGISTERED = -2

Work = Callable[[Topic, Sequence[PartitionState]], Iterator[None]]  # on partitions of a topic, one in each step


class Image:
    """Reads are synchronous. `brokers` are the live ones, on which new partitions may be placed.

    `broker_epoch` is that of this broker's registration, -1 without a cluster, NOT_REGISTERED while it has none.
    `min_insync_replicas` returns min.insync.replicas of a topic, as this broker is configured.
    """

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.cluster_id = ""
        self.brokers: Mapping[int, BrokerRegistration] = {}
        self.controller_id: int | None = None
        self.broker_epoch = -1
        self.min_insync_replicas: Callable[[Topic], int] = lambda _: 1
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._by_collision_key: dict[str, set[str]] = {}
        self._configs: dict[tuple[ConfigKind, str], Mapping[str, str]] = {}
        self._replica_brokers: frozenset[int] | None = None  # None: not known for the present topics
        self._listeners: list[Callable[[Change], None]] = []
        self._before_added: list[Work] = []
        self._after_added: list[Work] = []
        self._after_removed: list[Work] = []

    # ---- reading

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def partition(self, name: str, index: int) -> PartitionState | None:
        """None for a partition that does not exist."""
        topic = self._by_name.get(name)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def is_leader(self, state: PartitionState) -> bool:
        """Whether this broker, in its present registration, is the leader."""
        return state.leader == self.broker_id and state.leader_broker_epoch == self.broker_epoch

    def names(self) -> list[str]:
        """Sorted."""
        return sorted(self._by_name)

    def colliding_names(self, name: str) -> list[str]:
        """Sorted names of topics that differ from `name` only in '.' and '_', or not at all."""
        return sorted(self._by_collision_key.get(collision_key(name), ()))

    def __iter__(self) -> Iterator[Topic]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def absent_brokers(self) -> frozenset[int]:
        """Return the brokers that are not live and have replicas: as fenced ones in Kafka they may come back (PL2).

        A request may need them for each of its topics: the replicas are looked at once after each change.
        """
        if self._replica_brokers is None:
            replicas = (state.replicas for topic in self for state in topic.partitions)
            self._replica_brokers = frozenset(chain.from_iterable(replicas))
        return self._replica_brokers - self.brokers.keys()

    def resource_configs(self, kind: ConfigKind, name: str) -> Mapping[str, str]:
        """Return the own configs of a broker, a group or a client metrics subscription; empty when it has none."""
        return self._configs.get((kind, name), {})

    def configured(self, kind: ConfigKind) -> list[str]:
        """Return the sorted names of those of this kind that have configs of their own."""
        return sorted(name for each, name in self._configs if each is kind)

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` after every change (see `changes`)."""
        self._listeners.append(listener)

    def before_partitions_added(self, work: Work) -> None:
        """T11. Do `work` on new partitions once they are durable and before the image has them."""
        self._before_added.append(work)

    def after_partitions_added(self, work: Work) -> None:
        """T11. Do `work` on new partitions after the image has them; the change ends when it is done.

        The states may have changed since: the image has the present ones.
        """
        self._after_added.append(work)

    def after_partitions_removed(self, work: Work) -> None:
        """T11. Do `work` on the partitions of a topic that the image has no more; the change ends when it is done.

        A later topic of the same name is not read before. What was registered last works first.
        """
        self._after_removed.insert(0, work)

    # ---- changing

    def apply_topic(self, topic: Topic) -> None:
        """Set a topic to its state in the store. Its partitions are in the order of their indexes."""
        for _ in self.replace_topic(topic.name, topic):
            pass

    def remove_topic(self, name: str) -> None:
        """Remove a topic, if it exists."""
        for _ in self.replace_topic(name, None):
            pass

    def replace_topic(self, name: str, topic: Topic | None) -> Iterator[None]:
        """Set a topic to its state in the store, None if it does not exist; each step works on one partition.

        T11. One at a time for each name. The image changes in one step, and listeners are called in it.
        """
        before = self._by_name.get(name)
        if before is not None and (topic is None or before.topic_id != topic.topic_id):
            self._forget(before)
            yield from _do(self._after_removed, before, before.partitions)
            before = None
        if topic is None:
            return
        added = topic.partitions[0 if before is None else len(before.partitions) :]
        yield from _do(self._before_added, topic, added)
        self._take_over(topic)
        yield from _do(self._after_added, topic, added)

    def apply_states(self, topic_id: bytes, states: Iterable[PartitionState]) -> None:
        """Set leaders, ISRs and epochs of some partitions, not their replicas. Unknown partitions are ignored."""
        before = self._by_id.get(topic_id)
        if before is None:
            return
        partitions = list(before.partitions)
        for state in states:
            if state.index < len(partitions):
                old = partitions[state.index]
                partitions[state.index] = _latest(old, replicated_as(state, old))
        self._replace(before, replace(before, partitions=tuple(partitions)))

    def apply_brokers(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Set the live brokers."""
        if brokers != self.brokers:
            self.brokers = dict(brokers)
            self._notify(BrokersChanged(self.brokers))

    def apply_registration(self, epoch: int) -> None:
        """Set the epoch of this broker's registration: it leads only partitions for which it was elected since then."""
        if epoch == self.broker_epoch:
            return
        before, self.broker_epoch = self.broker_epoch, epoch
        for topic in list(self._by_name.values()):
            led = tuple(state.index for state in topic.partitions if self._is_affected(state, before))
            if led:
                self._notify(PartitionsChanged(topic, led))

    def _is_affected(self, state: PartitionState, epoch: int) -> bool:
        return state.leader == self.broker_id and state.leader_broker_epoch in (epoch, self.broker_epoch)

    def apply_controller(self, broker_id: int | None) -> None:
        """Set the controller's id; None while there is none."""
        if broker_id != self.controller_id:
            self.controller_id = broker_id
            self._notify(ControllerChanged(broker_id))

    def apply_configs(self, kind: ConfigKind, name: str, configs: Mapping[str, str]) -> None:
        """Set the own configs of a broker, a group or a client metrics subscription."""
        if configs == self.resource_configs(kind, name):
            return
        if configs:
            self._configs[kind, name] = dict(configs)
        else:
            del self._configs[kind, name]
        self._notify(ResourceConfigChanged(kind, name))

    # ---- inside

    def _take_over(self, topic: Topic) -> None:
        before = self._by_name.get(topic.name)
        if before is None:
            self._remember(topic)
            self._notify(TopicCreated(topic))
            return
        common = zip(before.partitions, topic.partitions, strict=False)
        states = tuple(_latest(old, new) for old, new in common)
        after = replace(topic, partitions=(*states, *topic.partitions[len(before.partitions) :]))
        self._replace(before, after)

    def _forget(self, topic: Topic) -> None:
        self._replica_brokers = None
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        colliding = self._by_collision_key[collision_key(topic.name)]
        colliding.discard(topic.name)
        if not colliding:
            del self._by_collision_key[collision_key(topic.name)]
        self._notify(TopicDeleted(topic))

    def _replace(self, before: Topic, after: Topic) -> None:
        """Replace the state of a known topic; call the listeners for each kind of change between the two."""
        count = len(before.partitions)
        pairs = zip(before.partitions, after.partitions, strict=False)
        changed = tuple(old.index for old, new in pairs if old is not new and old != new)
        self._remember(after)
        if len(after.partitions) > count:
            self._notify(PartitionsAdded(after, count))
        if changed:
            self._notify(PartitionsChanged(after, changed))
        if before.configs != after.configs:
            self._notify(ConfigChanged(after))

    def _remember(self, topic: Topic) -> None:
        self._replica_brokers = None
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        self._by_collision_key.setdefault(collision_key(topic.name), set()).add(topic.name)

    def _notify(self, change: Change) -> None:
        for listener in list(self._listeners):
            listener(change)


def _latest(old: PartitionState, new: PartitionState) -> PartitionState:
    """T8. `new`, but with the leader, ISR and epochs of `old` where those are of a later version."""
    if new.version >= old.version:
        return new
    return replicated_as(old, new)


def _do(works: Iterable[Work], topic: Topic, states: Sequence[PartitionState]) -> Iterator[None]:
    for work in works:
        yield from work(topic, states)
