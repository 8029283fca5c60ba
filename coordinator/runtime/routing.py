"""Which shard a group belongs to: abs(java_hash(group_id)) mod count, as Kafka's `partitionFor`.

Law
    java_hash is the 31-polynomial over UTF-16 code units with int32 overflow, and abs(MIN_VALUE) is 0. It is neither
    `& 0x7fffffff` nor Python's `hash`: clients and tools compute the same number.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

SHARDS_DEFAULT: Final = 50
REMEMBERED_GROUPS_MAX: Final = 65_536
REMEMBERED_CHARS_MAX: Final = 256  # a longer id is hashed each time: what unknown clients send must not fill the memory


def java_hash(text: str) -> int:
    """`String.hashCode()`: a signed 32-bit number."""
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = (value * 31 + unit) & 0xFFFFFFFF
        return value - 0x1_0000_0000 if value & 0x8000_0000 else value
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        value = (value * 31 + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def shard_of(group_id: str, count: int = SHARDS_DEFAULT) -> int:
    """The partition of `__consumer_offsets` that holds this group."""
    return _remembered(group_id, count) if len(group_id) <= REMEMBERED_CHARS_MAX else _shard_of(group_id, count)


def _shard_of(group_id: str, count: int) -> int:
    value = java_hash(group_id)
    return 0 if value == -0x8000_0000 else abs(value) % count


_remembered = lru_cache(REMEMBERED_GROUPS_MAX)(_shard_of)
