"""The broker to fetch a partition from: its leader, or a closer replica that the leader named (KIP-392). Pure.

Laws
    A leader that a broker named (KIP-951) counts until the metadata have a newer epoch, or another topic of the name.
    A closer replica counts until its time is over or it refuses; then the leader gets the fetch again.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.client.network.metadata import Metadata
from rota.client.types import TopicPartition
from rota.protocol.wire import UUID_ZERO


class Source(NamedTuple):
    """A node, and the epoch of the partition's leader (-1 unknown), which may be another node."""

    node: int
    leader_epoch: int
    is_leader: bool = True


class Sources:
    """`replica_ms`: how long a closer replica is used before the leader gets a fetch again."""

    def __init__(self, replica_ms: int) -> None:
        self._replica_ms = replica_ms
        self._named: dict[TopicPartition, tuple[int, int, bytes]] = {}  # leader, epoch, topic id
        self._near: dict[TopicPartition, tuple[int, int]] = {}  # replica, until when

    def of(self, partition: TopicPartition, metadata: Metadata, now_ms: int) -> Source | None:
        """The broker to fetch from; None when no leader is known."""
        info = metadata.info(partition)
        leader, epoch = (info.leader, info.leader_epoch) if info is not None else (-1, -1)
        override = self._named.get(partition)
        if override is not None:
            is_same_topic = override[2] in (UUID_ZERO, metadata.topic_id(partition.topic))
            if not is_same_topic or override[1] <= epoch:
                del self._named[partition]
            elif override[0] in metadata.brokers:
                leader, epoch, _ = override
        near = self._near.get(partition)
        if near is not None:
            if now_ms < near[1] and near[0] in metadata.brokers:
                return Source(near[0], epoch, near[0] == leader)
            del self._near[partition]
        return Source(leader, epoch) if leader in metadata.brokers else None

    def set_leader(self, partition: TopicPartition, node: int, epoch: int, topic_id: bytes = UUID_ZERO) -> None:
        """Fetch from the leader that another broker named. `topic_id` is that of the fetch; zero when it had none."""
        if node >= 0 and epoch >= 0:
            self._named[partition] = (node, epoch, topic_id)

    def set_preferred_replica(self, partition: TopicPartition, node: int, now_ms: int) -> None:
        """The leader named a closer replica."""
        self._near[partition] = (node, now_ms + self._replica_ms)

    def forget_replica(self, partition: TopicPartition) -> bool:
        """Ask the leader from now on. Returns whether a replica was used until now."""
        return self._near.pop(partition, None) is not None
