"""Reads one topic from its nodes in the metadata store.

Laws
    T11 The states of many partitions are read in slices, between which the loop does its other work.
    T12 A topic that exists, and of which a node is missing or cannot be read, does not count as deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice

from rota.coordinator.metadata import eager_tasks, topic_nodes, znodes
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.resource_configs import read_configs
from rota.coordinator.metadata.store import BadVersion, Create, NodeExists, NoNode, Stat, Store, Watch
from rota.coordinator.metadata.topic import PartitionState, Topic, replicated_as

READ_PER_SLICE = 128  # partitions whose states are read from the store in one turn of the loop: about 5 ms


async def read(
    store: Store, name: str, image: Image, watch: Watch | None, stale: Collection[int] | None = None
) -> Topic | None:
    """Return the topic; None when it does not exist, or not as a whole. Raises UnreadableNode, StoreFailed.

    `watch` is set on every node that is read. With `stale`, the partitions that `image` knows are those of the image,
    but for these.
    """
    path = znodes.topic_path(name)
    try:
        data, stat = await store.get(path, watch)
    except NoNode:
        return None
    if data == topic_nodes.INCOMPLETE:
        return None
    try:
        return await _read_whole(store, name, (data, stat), image, watch, stale)
    except NoNode as missing:
        now = await store.exists(path)
        if now is None or (now.created, now.version) != (stat.created, stat.version):
            return None  # it is being deleted
        await store.exists(missing.path, watch)
        raise znodes.UnreadableNode(f"{missing.path} is missing, and {path} is not") from None


async def _read_whole(
    store: Store, name: str, node: tuple[bytes, Stat], image: Image, watch: Watch | None, stale: Collection[int] | None
) -> Topic:
    """Read what belongs to a topic's node. Raises NoNode, UnreadableNode, StoreFailed."""
    data, stat = node
    with znodes.reading(znodes.topic_path(name)):
        topic_id, states = znodes.read_topic(data)
    if stat.child_count < topic_nodes.CHILDREN:
        await _create_id_node(store, name, topic_id, stat.version)
    config, _ = await store.get(znodes.config_path(name), watch)
    known = image.by_id(topic_id)
    partitions = await _read_states(store, name, states, known, watch, stale)
    configs = read_configs("topics", name, config)
    return Topic(name=name, topic_id=topic_id, partitions=partitions, configs=configs, version=stat.version)


async def _create_id_node(store: Store, name: str, topic_id: bytes, version: int) -> None:
    """Complete a topic that an earlier version of Rota created, without a node for its id."""
    with suppress(BadVersion, NodeExists, NoNode):  # another broker does it, or has changed the topic
        node = Create(znodes.topic_id_path(name, topic_id))
        await store.commit([topic_nodes.fence(name, version), node])


async def _read_states(
    store: Store,
    name: str,
    states: Iterator[PartitionState],
    known: Topic | None,
    watch: Watch | None,
    stale: Collection[int] | None,
) -> tuple[PartitionState, ...]:
    """T11. Partitions that are known and not `stale` are those of the image."""
    read = list[PartitionState]()
    before = () if known is None or stale is None else known.partitions
    while portion := _next(name, states):
        unread = [state for state in portion if state.index >= len(before) or state.index in (stale or ())]
        paths = [znodes.state_path(name, state.index) for state in unread]
        found = dict(zip(paths, await store.get_many(paths, watch) if paths else (), strict=True))
        for state in portion:
            if (node := found.get(znodes.state_path(name, state.index))) is None:
                read.append(replicated_as(before[state.index], state))
            else:
                with znodes.reading(znodes.state_path(name, state.index)):
                    read.append(znodes.read_state(node[0], node[1].version, state))
        if len(portion) == READ_PER_SLICE:
            await eager_tasks.yield_to_loop()
    return tuple(read)


def _next(name: str, states: Iterator[PartitionState]) -> list[PartitionState]:
    """Return the partitions of the next slice. Raises UnreadableNode."""
    with znodes.reading(znodes.topic_path(name)):
        return list(islice(states, READ_PER_SLICE))
