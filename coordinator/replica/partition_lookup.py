"""Finds partitions by topic name or topic id, with the error code of one that is not on this broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.metadata.topics import Topics
    from rota.coordinator.replica.partition import Partition
    from rota.coordinator.replica.partitions import Partitions

Key = tuple[str | bytes, int]  # topic name or 16-byte id, partition


class PartitionLookup:
    """Looks up partitions by name or by id."""

    __slots__ = ("partitions", "topics")

    def __init__(self, topics: Topics, partitions: Partitions) -> None:
        self.topics, self.partitions = topics, partitions

    def find(self, key: Key) -> Partition | None:
        topic, index = key
        if isinstance(topic, str):
            return self.partitions.get(topic, index)
        return self.partitions.get_by_id(topic, index)

    def missing(self, key: Key) -> ErrorCode:
        """Return the error code of a partition that is not on this broker; NONE when it is."""
        if self.find(key) is not None:
            return ErrorCode.NONE
        name, index = key
        topic = self.topics.get(name) if isinstance(name, str) else self.topics.by_id(name)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(name, str) else ErrorCode.UNKNOWN_TOPIC_ID
        if not 0 <= index < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
