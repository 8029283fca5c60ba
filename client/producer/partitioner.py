"""Which partition a key belongs to: murmur2, as Kafka's own producer computes it. Pure.

Laws
    The same key goes to the same partition as from Java's default partitioner and librdkafka's `murmur2_random`, as
    long as the topic has as many partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from rota.protocol.records.produced import murmur2

Partitioner = Callable[[str, bytes | None, bytes | None, Sequence[int]], int]
"""(topic, key, value, the topic's partition numbers in order) -> one of these numbers."""

KEY_BYTES_REMEMBERED_MAX: Final = 64  # longer keys are hashed each time, so that what is remembered stays small
KEYS_REMEMBERED_MAX: Final = 4096

_POSITIVE: Final = 0x7FFF_FFFF


def partition_of(key: bytes, count: int) -> int:
    """The partition of a key in a topic of `count` partitions, led by somebody or not."""
    hashed = _remembered(key) if len(key) <= KEY_BYTES_REMEMBERED_MAX else murmur2(key)
    return (hashed & _POSITIVE) % count


_remembered = lru_cache(KEYS_REMEMBERED_MAX)(murmur2)
