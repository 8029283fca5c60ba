"""Which partition a key belongs to: murmur2, as Kafka's own producer computes it. Pure.

Laws
    The same key goes to the same partition as from Java's default partitioner and librdkafka's `murmur2_random`, as
    long as the topic has as many partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import unpack_from
from typing import Final

Partitioner = Callable[[str, bytes | None, bytes | None, Sequence[int]], int]
"""(topic, key, value, the topic's partition numbers in order) -> one of these numbers."""

KEY_BYTES_REMEMBERED_MAX: Final = 64  # longer keys are hashed each time, so that what is remembered stays small
KEYS_REMEMBERED_MAX: Final = 4096

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_U32: Final = 0xFFFF_FFFF
_POSITIVE: Final = 0x7FFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 of Kafka (org.apache.kafka.common.utils.Utils), unsigned."""
    size = len(data)
    hashed = _SEED ^ size
    for word in unpack_from(f"<{size >> 2}I", data):
        word = word * _M & _U32
        hashed = (hashed * _M ^ (word ^ word >> 24) * _M) & _U32
    rest = size & 3
    if rest:
        hashed = (hashed ^ int.from_bytes(data[size - rest :], "little")) * _M & _U32
    hashed = (hashed ^ hashed >> 13) * _M & _U32
    return hashed ^ hashed >> 15


def partition_of(key: bytes, count: int) -> int:
    """The partition of a key in a topic of `count` partitions, led by somebody or not."""
    hashed = _remembered(key) if len(key) <= KEY_BYTES_REMEMBERED_MAX else murmur2(key)
    return (hashed & _POSITIVE) % count


_remembered = lru_cache(KEYS_REMEMBERED_MAX)(murmur2)
