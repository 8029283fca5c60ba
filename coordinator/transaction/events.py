"""The events of a transactional id: requests, the timer, markers that were written, and events for all ids.

Times are passed beside an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rota.coordinator.runtime.contract import TimerFired, Token
from rota.protocol.dataclass import dataclass

TopicPartition = tuple[str, int]


class Producer(NamedTuple):
    """A producer id with its epoch."""

    producer_id: int
    epoch: int


@dataclass(slots=True, kw_only=True)
class InitProducer:
    """InitProducerId. `expected` is what the producer had (KIP-360).

    `fresh_id` is a new producer id for a machine that `is_producer_id_needed`; None if none was drawn.
    """

    token: Token
    timeout_ms: int
    expected: Producer | None = None
    fresh_id: int | None = None


@dataclass(slots=True, kw_only=True)
class AddPartitions:
    """AddPartitionsToTxn and AddOffsetsToTxn. `client_version` is the transaction version of the producer: 0 or 2."""

    token: Token
    producer: Producer
    partitions: tuple[TopicPartition, ...]
    client_version: int


@dataclass(slots=True, kw_only=True)
class VerifyPartitions:
    """AddPartitionsToTxn with `verify_only`: it adds nothing."""

    token: Token
    producer: Producer
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True, kw_only=True)
class EndTransaction:
    """EndTxn. `fresh_id` as in InitProducer: when the epochs of the producer id are used up, the next id."""

    token: Token
    producer: Producer
    is_commit: bool
    client_version: int
    fresh_id: int | None = None


@dataclass(slots=True)
class MarkersWritten:
    """The markers of this producer and epoch are committed on these partitions, or are not needed there."""

    producer: Producer
    partitions: Iterable[TopicPartition]


@dataclass(slots=True)
class Resume:
    """Send the missing markers of a transaction that was decided before this coordinator loaded it."""


@dataclass(slots=True)
class ExpireIds:
    """Remove what has no transaction and was not updated for `retention_ms` (transactional.id.expiration.ms)."""

    retention_ms: int


Event = (
    InitProducer | AddPartitions | VerifyPartitions | EndTransaction | MarkersWritten | Resume | ExpireIds | TimerFired
)
