"""The cluster as this broker knows it: topics, live brokers and the controller, in memory. Pure.

Laws
    T3  Each listener is called once for every change, in order, after the image has it.
    T8  A partition's leader, ISR and epoch only change to those of a later version of its state node, whatever order
        reads and own writes end in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

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
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topic_names import collision_key

NOT_REGISTERED = -2


class Image:
    """Reads are synchronous. `brokers` are the live ones, on which new partitions may be placed.

    `broker_epoch` is that of this broker's registration, -1 without a cluster, NOT_REGISTERED while it has none.
    """

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.cluster_id = ""
        self.brokers: Mapping[int, BrokerRegistration] = {}
        self.controller_id: int | None = None
        self.broker_epoch = -1
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._by_collision_key: dict[str, set[str]] = {}
        self._configs: dict[tuple[ConfigKind, str], Mapping[str, str]] = {}
        self._listeners: list[Callable[[Change], None]] = []

    # ---- reading

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def partition(self, name: str, index: int) -> PartitionState | None:
        """None for a partition that does not exist."""
        topic = self._by_name.get(name)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def leads(self, state: PartitionState) -> bool:
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

    def resource_configs(self, kind: ConfigKind, name: str) -> Mapping[str, str]:
        """Return the own configs of a broker, a group or a client metrics subscription; empty when it has none."""
        return self._configs.get((kind, name), {})

    def configured(self, kind: ConfigKind) -> list[str]:
        """Return the sorted names of those of this kind that have configs of their own."""
        return sorted(name for each, name in self._configs if each is kind)

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` after every change (see `changes`)."""
        self._listeners.append(listener)

    # ---- changing

    def apply_topic(self, topic: Topic) -> None:
        """Take over what the store has of a topic. Its partitions are in the order of their indexes."""
        before = self._by_name.get(topic.name)
        if before is not None and before.topic_id != topic.topic_id:
            self.remove_topic(topic.name)
            before = None
        if before is None:
            self._remember(topic)
            self._notify(TopicCreated(topic))
            return
        common = zip(before.partitions, topic.partitions, strict=False)
        states = tuple(_latest(old, new) for old, new in common)
        after = replace(topic, partitions=(*states, *topic.partitions[len(before.partitions) :]))
        self._replace(before, after)

    def apply_states(self, topic_id: bytes, states: Iterable[PartitionState]) -> None:
        """Take over leaders, ISRs and epochs of some partitions; replicas stay. Unknown partitions are ignored."""
        before = self._by_id.get(topic_id)
        if before is None:
            return
        partitions = list(before.partitions)
        for state in states:
            if state.index < len(partitions):
                old = partitions[state.index]
                same = replace(state, replicas=old.replicas, adding=old.adding, removing=old.removing)
                partitions[state.index] = _latest(old, same)
        self._replace(before, replace(before, partitions=tuple(partitions)))

    def remove_topic(self, name: str) -> None:
        """Forget a topic, if it is there."""
        topic = self._by_name.get(name)
        if topic is None:
            return
        del self._by_name[name], self._by_id[topic.topic_id]
        colliding = self._by_collision_key[collision_key(name)]
        colliding.discard(name)
        if not colliding:
            del self._by_collision_key[collision_key(name)]
        self._notify(TopicDeleted(topic))

    def apply_brokers(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Take over the live brokers."""
        if brokers != self.brokers:
            self.brokers = dict(brokers)
            self._notify(BrokersChanged(self.brokers))

    def apply_registration(self, epoch: int) -> None:
        """Take over the epoch of this broker's registration: it leads what it was given to lead since then."""
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
        """Take over the controller's id; None while there is none."""
        if broker_id != self.controller_id:
            self.controller_id = broker_id
            self._notify(ControllerChanged(broker_id))

    def apply_configs(self, kind: ConfigKind, name: str, configs: Mapping[str, str]) -> None:
        """Take over the own configs of a broker, a group or a client metrics subscription."""
        if configs == self.resource_configs(kind, name):
            return
        if configs:
            self._configs[kind, name] = dict(configs)
        else:
            del self._configs[kind, name]
        self._notify(ResourceConfigChanged(kind, name))

    # ---- inside

    def _replace(self, before: Topic, after: Topic) -> None:
        """Remember a known topic in a new state; notify of each kind of change that the two differ in."""
        count = len(before.partitions)
        pairs = zip(before.partitions, after.partitions, strict=False)
        changed = tuple(old.index for old, new in pairs if old != new)
        self._remember(after)
        if len(after.partitions) > count:
            self._notify(PartitionsAdded(after, count))
        if changed:
            self._notify(PartitionsChanged(after, changed))
        if before.configs != after.configs:
            self._notify(ConfigChanged(after))

    def _remember(self, topic: Topic) -> None:
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
    return replace(old, replicas=new.replicas, adding=new.adding, removing=new.removing)
