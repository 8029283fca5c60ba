"""The fetched records that the user has not taken yet, and failures, in the order of their responses. Pure.

Laws
    A partition has two fetches at most: the one that is being taken and the next.
    A failure is raised once, after all earlier records.
    Fetches of an earlier position epoch are discarded.
    A paused partition keeps only its own bytes, not the frame of the response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.client.consumer.completed_fetch import CompletedFetch
from rota.client.consumer.positions import Position, Positions
from rota.client.errors import CorruptRecords
from rota.client.types import ConsumerRecord, TopicPartition


class FetchFailure:
    """A failed fetch, to be raised by `take`."""

    __slots__ = ("error", "position_epoch")

    def __init__(self, error: Exception, position_epoch: int) -> None:
        self.error, self.position_epoch = error, position_epoch


class FetchOffset(NamedTuple):
    """The offset of the next fetch, and the leader epoch of the record before it."""

    offset: int
    last_epoch: int


class FetchBuffer:
    """`put` and `fail`, `take`."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._waiting: dict[TopicPartition, list[CompletedFetch | FetchFailure]] = {}

    @property
    def held_bytes(self) -> int:
        """The memory that the buffered fetches hold, in bytes."""
        held = [
            fetch.held for fetches in self._waiting.values() for fetch in fetches if isinstance(fetch, CompletedFetch)
        ]
        return sum(len(data) for data in {id(data): data for data in held}.values())

    def put(self, buffered: CompletedFetch) -> None:
        self._waiting.setdefault(buffered.partition, []).append(buffered)

    def fail(self, partition: TopicPartition, error: Exception, position_epoch: int) -> None:
        self._waiting.setdefault(partition, []).append(FetchFailure(error, position_epoch))

    def keep_for_user(self, partition: TopicPartition) -> bool:
        """Fetch the partition again only after the user has taken its records. Return False if it has none."""
        fetches = self._waiting.get(partition)
        if fetches is None:
            return False
        if isinstance(fetches[-1], CompletedFetch):
            fetches[-1].end = None
        return True

    def next_fetch(self, partition: TopicPartition, position: Position) -> FetchOffset | None:
        """Return the offset of the next fetch: the position, or the end of the buffered fetch; None: no fetch now."""
        fetches = self._waiting.get(partition)
        if fetches is None:
            return None if position.offset is None else FetchOffset(position.offset, position.leader_epoch)
        last = fetches[-1]
        if len(fetches) > 1 or not isinstance(last, CompletedFetch) or last.end is None:
            return None
        return FetchOffset(*last.end)

    def has_any(self) -> bool:
        """Return whether `take` would return records or raise."""
        return next(self._ready(), None) is not None

    def full_nodes(self) -> set[int]:
        """Return the brokers with two buffered responses, without those of paused partitions."""
        fetches = [fetch for _, waiting in self._ready() for fetch in waiting if isinstance(fetch, CompletedFetch)]
        nodes = [node for node, _ in {(fetch.node, fetch.answer) for fetch in fetches}]
        return {node for node in nodes if nodes.count(node) > 1}

    def clear(self) -> None:
        self._waiting.clear()

    def discard_stale(self) -> None:
        """Discard fetches of earlier position epochs; free frames that only paused partitions hold."""
        for partition, fetches in list(self._waiting.items()):
            position = self._positions.find(partition)
            if position is None or position.position_epoch != fetches[0].position_epoch:
                del self._waiting[partition]
            elif position.paused:
                for fetch in fetches:
                    if isinstance(fetch, CompletedFetch):
                        fetch.copy_rest()

    def take(self, records_max: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return up to `records_max` records in order, and move their positions. Raises a failure."""
        result: dict[TopicPartition, list[ConsumerRecord]] = {}
        for partition, fetches in list(self._ready()):
            if records_max <= 0:
                break
            fetch = fetches[0]
            if isinstance(fetch, FetchFailure):
                if result:
                    break
                del self._waiting[partition]
                raise fetch.error
            try:
                records = self._taken(partition, fetch, records_max)
            except CorruptRecords:
                if result:
                    break
                del self._waiting[partition]
                raise
            if records:
                result[partition] = records
                records_max -= len(records)
        return result

    def _taken(self, partition: TopicPartition, fetch: CompletedFetch, records_max: int) -> list[ConsumerRecord]:
        try:
            records = fetch.take(records_max)
        finally:
            position = self._positions.of(partition)
            position.offset = fetch.next_offset
            if fetch.leader_epoch >= 0:
                position.leader_epoch = fetch.leader_epoch
        if fetch.is_done:
            rest = self._waiting.pop(partition)[1:]
            if rest:  # in its turn, behind the others
                self._waiting[partition] = rest
        return records

    def _ready(self) -> Iterator[tuple[TopicPartition, list[CompletedFetch | FetchFailure]]]:
        for partition, fetches in self._waiting.items():
            position = self._positions.find(partition)
            if position is not None and position.position_epoch == fetches[0].position_epoch and not position.paused:
                yield partition, fetches
