"""The store operations that create, grow and delete a topic, in commits that the store accepts. Pure.

A topic of many partitions does not fit into one commit. The topic's node is its commit point: while its data is empty,
the topic does not exist for readers. Each commit after the first checks the version of that node: whoever changes the
topic next changes the node first, and the earlier one, if it still works, writes nothing more. No broker completes what
stopped half way: the next creation of a topic of that name, or the next growth, deletes what is left of it.
The versions of a topic that was created again begin at 0 again. A topic that readers see has a node named for its id;
each commit that changes its nodes checks that node, so that a change that was meant for a deleted topic of the same
name fails (T2).
The operations of a commit are made when the caller requests the commit: those of 10,000 partitions take 50 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rota.coordinator.metadata import commits, znodes
from rota.coordinator.metadata.store import NODE_BYTES_MAX, BadNode, Check, Create, Delete, Op, Set
from rota.coordinator.metadata.topic import PartitionState, Topic

INCOMPLETE = b""
FIRST_VERSION = 0  # of a node
OPS_PER_PARTITION = 2  # its node, and that of its state
CHILDREN = 2  # of the topic's node: that of its id, and that of its partitions
OTHER_OPS = 4  # of a creation: the configs, the topic's node and its children


def creation(topic: Topic, taken_over: int | None = None) -> Iterator[list[Op]]:
    """Yield the commits that create a topic: one, or several of which the last one makes it visible. Raises BadNode.

    `taken_over` is the version of the topic's node when an incomplete one is there already, and nothing else.
    """
    path, node = znodes.topic_path(topic.name), _topic_node(topic)
    config = Create(
        znodes.config_path(topic.name), _checked(znodes.config_path(topic.name), znodes.config_node(topic.configs))
    )
    partitions = Create(znodes.partitions_path(topic.name))
    states = _creations(topic.name, topic.partitions)
    topic_id = Create(znodes.topic_id_path(topic.name, topic.topic_id))
    if taken_over is None and OTHER_OPS + OPS_PER_PARTITION * len(topic.partitions) <= commits.OPS_PER_COMMIT_MAX:
        yield [config, Create(path, node), topic_id, partitions, *states]
        return
    version = FIRST_VERSION if taken_over is None else taken_over
    first: Op = Create(path, INCOMPLETE) if taken_over is None else fence(topic.name, version)
    yield [config, first, partitions]
    yield from _portions(states, fence(topic.name, version))
    yield [Set(path, node, version), topic_id]


def can_fit_in_one_commit(added: Sequence[PartitionState]) -> bool:
    """Return whether `growth` by these partitions is one commit."""
    return OPS_PER_PARTITION * len(added) + 2 <= commits.OPS_PER_COMMIT_MAX


def growth(grown: Topic, added: Sequence[PartitionState], version: int) -> Iterator[list[Op]]:
    """Yield the commits that add partitions; the last one sets the topic's node of that version. Raises BadNode."""
    path = znodes.topic_path(grown.name)
    node: Op = Set(path, _topic_node(grown), version)
    states = _creations(grown.name, added)
    if can_fit_in_one_commit(added):
        yield [is_same(grown), node, *states]
        return
    yield from _portions(states, fence(grown.name, version))
    yield [is_same(grown), node]


def deletion(name: str, indexes: Sequence[int], version: int, topic_id: bytes | None) -> Iterator[list[Op]]:
    """Yield the commits that delete a topic whose node has `version`; the first one makes it invisible.

    `topic_id` is None for a topic that is invisible already.
    """
    path, states = znodes.topic_path(name), _deletions(name, indexes)
    head: list[Op] = [] if topic_id is None else [Delete(znodes.topic_id_path(name, topic_id))]
    tail: list[Op] = [Delete(znodes.partitions_path(name)), Delete(znodes.config_path(name))]
    if OPS_PER_PARTITION * len(indexes) + len(head) + len(tail) < commits.OPS_PER_COMMIT_MAX:
        yield [*head, *states, *tail, Delete(path, version)]
        return
    yield [*head, Set(path, INCOMPLETE, version)]
    yield from _portions(states, fence(name, version + 1))
    yield [*tail, Delete(path, version + 1)]


def removal(name: str, indexes: Iterable[int], version: int) -> Iterator[list[Op]]:
    """Yield the commits that delete partitions that no reader sees."""
    return _portions(_deletions(name, indexes), fence(name, version))


def fence(name: str, version: int) -> Op:
    """Return the operation that lets a commit succeed only if no other broker has changed the topic's node."""
    return Check(znodes.topic_path(name), version)


def is_same(topic: Topic) -> Op:
    """Return the operation that lets a commit succeed only if the name still belongs to this topic (T2)."""
    return Check(znodes.topic_id_path(topic.name, topic.topic_id), FIRST_VERSION)


def _topic_node(topic: Topic) -> bytes:
    return _checked(znodes.topic_path(topic.name), znodes.topic_node(topic))


def _checked(path: str, data: bytes) -> bytes:
    """Raise BadNode before the first commit, not with the last one."""
    if len(data) > NODE_BYTES_MAX:
        raise BadNode(path, f"{len(data)} bytes, which is more than {NODE_BYTES_MAX}")
    return data


def _creations(name: str, states: Iterable[PartitionState]) -> Iterator[Op]:
    for state in states:
        yield Create(znodes.partition_path(name, state.index))
        yield Create(znodes.state_path(name, state.index), znodes.state_node(state))


def _deletions(name: str, indexes: Iterable[int]) -> Iterator[Op]:
    for index in indexes:
        yield Delete(znodes.state_path(name, index))
        yield Delete(znodes.partition_path(name, index))


def _portions(ops: Iterable[Op], check: Op) -> Iterator[list[Op]]:
    """Whole partitions, each portion with the check."""
    return ([check, *portion] for portion in commits.split(ops, 2))
