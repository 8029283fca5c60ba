"""Which partition a key belongs to: murmur2, as Kafka's own producer computes it. Pure.

Laws
    The same key goes to the same partition as from Java's default partitioner and librdkafka's `murmur2_random`, as
    long as the topic has as many partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rota.protocol.records.produced import partition_of

__all__ = ["Partitioner", "partition_of"]

Partitioner = Callable[[str, bytes | None, bytes | None, Sequence[int]], int]
"""(topic, key, value, the topic's partition numbers in order) -> one of these numbers."""
