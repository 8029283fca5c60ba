"""What a consumer group sees of the cluster's topics, and the hash by which it notices that they changed (KIP-1101).

Law
    The hash is Kafka's: of id, name, number of partitions and the racks of each; a group's hash is that of its topics'
    hashes, ordered by name. Topics that do not exist do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from typing import Final, Protocol

from rota.coordinator.consumer_group.xxh3 import xxh3_64
from rota.protocol.dataclass import dataclass

CACHED_HASHES_MAX: Final = 4_096
NO_HASH: Final = 0
_MAGIC: Final = b"\x00"
_ID_HALVES: Final = Struct(">QQ")
_LONGS: Final = Struct("<QQ")
_pack_long: Final = Struct("<Q").pack
_pack_int: Final = Struct("<i").pack
_SIGN: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """`racks` are those of the replicas, for each partition; a broker without a rack has none."""

    name: str
    topic_id: bytes
    racks: tuple[tuple[str, ...], ...]

    @property
    def partition_count(self) -> int:
        return len(self.racks)


class TopicDirectory(Protocol):
    """The topics as the broker knows them now."""

    @property
    def version(self) -> int:
        """Grows with every change of a topic, or of a broker's rack."""

    @property
    def created_version(self) -> int:
        """The version in which the last topic was created."""

    def get(self, name: str) -> TopicMetadata | None:
        """Return a topic, unless it does not exist."""

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        """Return a topic, unless it does not exist."""

    def names(self) -> Iterable[str]:
        """Return the names of all topics."""


def metadata_hash(names: Iterable[str], topics: TopicDirectory) -> int:
    """Return the hash of the topics of these names, as a signed number; 0 when none of them exists."""
    found = (topics.get(name) for name in sorted(names, key=_java_order))
    hashes = b"".join(_pack_long(_topic_hash(topic)) for topic in found if topic is not None)
    if not hashes:
        return NO_HASH
    value = xxh3_64(hashes)
    return value - (value & _SIGN) * 2


@lru_cache(CACHED_HASHES_MAX)
def _topic_hash(topic: TopicMetadata) -> int:
    parts = [_MAGIC, _LONGS.pack(*_ID_HALVES.unpack(topic.topic_id)), _text(topic.name), _pack_int(len(topic.racks))]
    for index, racks in enumerate(topic.racks):
        parts.append(_pack_int(index))
        for rack in sorted(racks, key=_java_order):
            parts += [_pack_int(_length(rack)), _text(rack)]
    return xxh3_64(b"".join(parts))


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + _pack_int(_length(text))


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _java_order(text: str) -> bytes:
    """Java compares UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
