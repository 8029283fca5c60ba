"""The store operations that create, grow and delete a topic, in commits that the store accepts. Pure.

A topic of many partitions does not fit into one commit. The topic's node is its commit point: while its data is empty,
the topic does not exist for readers. Nobody completes a creation that stopped half way: the next creation of a topic of
that name deletes what is left of it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.store import Create, Delete, Op, Set
from rota.coordinator.metadata.topic import PartitionState, Topic

OPS_PER_COMMIT_MAX = 2_000  # with at most 249 + 60 bytes of path and 200 of data each: below ZooKeeper's jute.maxbuffer
INCOMPLETE = b""


def creation(topic: Topic) -> list[list[Op]]:
    """The commits that create a topic: one, or several of which the last one makes it visible."""
    name, node = topic.name, znodes.topic_node(topic)
    head: list[Op] = [
        Create(znodes.config_path(name), znodes.config_node(topic.configs)),
        Create(znodes.topic_path(name), node),
        Create(znodes.partitions_path(name)),
    ]
    states = list(_creations(name, topic.partitions))
    if len(head) + len(states) <= OPS_PER_COMMIT_MAX:
        return [[*head, *states]]
    head[1] = Create(znodes.topic_path(name), INCOMPLETE)
    return [head, *_portions(states), [Set(znodes.topic_path(name), node)]]


def growth(grown: Topic, added: Sequence[PartitionState], version: int) -> list[list[Op]]:
    """The commits that add partitions; the last one sets the topic's node, which has `version`."""
    node: Op = Set(znodes.topic_path(grown.name), znodes.topic_node(grown), version)
    states = list(_creations(grown.name, added))
    if len(states) < OPS_PER_COMMIT_MAX:
        return [[node, *states]]
    return [*_portions(states), [node]]


def deletion(name: str, indexes: Sequence[int], *, has_config: bool = True) -> list[list[Op]]:
    """The commits that delete a topic; the first one makes it invisible."""
    states: list[Op] = []
    for index in indexes:
        states += Delete(znodes.state_path(name, index)), Delete(znodes.partition_path(name, index))
    tail: list[Op] = [Delete(znodes.partitions_path(name)), Delete(znodes.topic_path(name))]
    if has_config:
        tail.append(Delete(znodes.config_path(name)))
    if len(states) + len(tail) <= OPS_PER_COMMIT_MAX:
        return [[*states, *tail]]
    return [[Set(znodes.topic_path(name), INCOMPLETE)], *_portions(states), tail]


def _creations(name: str, states: Iterable[PartitionState]) -> Iterator[Op]:
    for state in states:
        yield Create(znodes.partition_path(name, state.index))
        yield Create(znodes.state_path(name, state.index), znodes.state_node(state))


def _portions(ops: Iterable[Op]) -> Iterator[list[Op]]:
    remaining = iter(ops)
    while portion := list(islice(remaining, OPS_PER_COMMIT_MAX)):
        yield portion
