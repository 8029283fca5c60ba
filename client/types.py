"""The values that go in and out of the client.

Times are milliseconds since the epoch, -1 where there is none. Offsets are those of the log; -1 is unknown, never 0.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from rota.protocol.dataclass import dataclass
from rota.protocol.records.consumed import ConsumerRecord
from rota.protocol.records.fast import Headers

__all__ = [
    "ConsumerRecord",
    "GroupMetadata",
    "Headers",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionInfo",
    "RecordMetadata",
    "TimestampType",
    "TopicPartition",
]


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TimestampType(IntEnum):
    """Whose clock a record's timestamp is."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset: that of the next record to read, metadata of at most 4 KiB, the leader epoch (KIP-320)."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetAndTimestamp:
    """The first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where a sent record lies. Offset -1: not known (acks=0, or a duplicate that the broker had forgotten)."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType = TimestampType.CREATE_TIME


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """A partition with its replicas. `leader` is a node id, -1 without a leader. `racks`: those of the replicas, if an
    assignor gets them (KIP-881)."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    racks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A consumer's membership, as commits carry it. Generation -1 and an empty member id: no member."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


def address_text(host: str, port: int) -> str:
    """Return HOST:PORT as bootstrap.servers has it: an IPv6 address is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
