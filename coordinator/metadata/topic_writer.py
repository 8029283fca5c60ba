"""Writes the nodes of a topic: creates them, adds partitions, deletes them, while other brokers may do the same.

Law
    TW1 Of several brokers that create, grow or delete a topic at one time, one at a time writes: it has changed the
        topic's node, and no commit of one that did so before succeeds (`topic_nodes`). What is reported as created is
        there as a whole, with the states that its creator wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from rota.coordinator.metadata import eager_tasks, topic_nodes, znodes
from rota.coordinator.metadata.store import (
    BadVersion,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    Set,
    Store,
    StoreFailed,
)
from rota.coordinator.metadata.topic import PartitionState, Topic

RETRIES_MAX: Final = 8  # of a change that other brokers' changes were faster than


async def create_nodes(store: Store, topic: Topic) -> None:
    """Raises NodeExists, BadNode; BadVersion or NoNode when another broker creates or deletes it, too; StoreFailed."""
    commits = topic_nodes.creation(topic)
    try:
        await store.commit(next(commits))
    except NodeExists:
        version = await _take_over(store, topic.name)
        commits = topic_nodes.creation(topic, version)
    await _commit_each(store, commits)


async def grow_nodes(store: Store, grown: Topic, added: Sequence[PartitionState]) -> None:
    """Raises BadVersion or NoNode when another broker changes the topic as well; BadNode, StoreFailed."""
    if topic_nodes.can_fit_in_one_commit(added):
        try:
            await store.commit(next(topic_nodes.growth(grown, added, grown.version)))
            return
        except NodeExists:
            pass  # what a growth that stopped half way has left
    path, version = znodes.topic_path(grown.name), grown.version + 1
    commits = topic_nodes.growth(grown, added, version)
    first = next(commits)  # nothing is written if it would not end
    data, _ = await store.get(path)
    await store.commit([topic_nodes.is_same(grown), Set(path, data, grown.version)])
    left = [index for index in await _indexes(store, grown.name) if index >= added[0].index]
    await _commit_each(store, topic_nodes.removal(grown.name, left, version))
    await _commit_each(store, chain([first], commits))


async def delete_nodes(store: Store, name: str) -> None:
    """Delete all nodes of a topic, those that another broker is adding included. Raises NoNode, StoreFailed."""
    for _ in range(RETRIES_MAX):
        path = znodes.topic_path(name)
        data, stat = await store.get(path)
        with znodes.reading(path):
            topic_id = None if data == topic_nodes.INCOMPLETE else znodes.read_topic(data)[0]
        commits = topic_nodes.deletion(name, await _indexes(store, name), stat.version, topic_id)
        try:
            await store.commit(next(commits))
        except (BadVersion, NotEmpty):
            continue
        try:
            await _commit_each(store, commits)
        except NotEmpty:
            continue  # a growth was under way
        except (BadVersion, NoNode):
            pass  # invisible since the first commit; another broker creates the topic again
        return
    raise StoreFailed(f"topic {name} could not be deleted: other brokers changed it again and again; try again")


async def _take_over(store: Store, name: str) -> int:
    """Delete what an interrupted creation or deletion has left, except the topic's node; return its version."""
    path, partitions, config = znodes.topic_path(name), znodes.partitions_path(name), znodes.config_path(name)
    data, stat = await store.get(path)
    if data != topic_nodes.INCOMPLETE:
        raise NodeExists(path)
    version = await store.set(path, topic_nodes.INCOMPLETE, stat.version)
    if await store.exists(partitions) is not None:
        await _commit_each(store, topic_nodes.removal(name, await _indexes(store, name), version))
    left: list[Op] = [Delete(each) for each in (partitions, config) if await store.exists(each) is not None]
    await store.commit([topic_nodes.fence(name, version), *left])
    return version


async def _indexes(store: Store, name: str) -> list[int]:
    return sorted(map(int, await store.children(znodes.partitions_path(name))))


async def _commit_each(store: Store, commits: Iterable[Sequence[Op]]) -> None:
    """T11. Make and write each in turns of the loop of its own, also with a store that does not wait."""
    for ops in commits:
        await eager_tasks.yield_to_loop()
        await store.commit(ops)
