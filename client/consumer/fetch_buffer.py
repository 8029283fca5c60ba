"""The fetched records that the user has not taken yet, and failures, in the order in which they came. Pure.

Laws
    A partition has two fetches at most: the one that is being taken and the next.
    A failure is raised once, in its turn, never before the records that came earlier.
    Fetches for an earlier position epoch are thrown away.
    A paused partition keeps its own bytes, not the frame that they came in.
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
        """The memory that the waiting fetches keep."""
        held = [one.held for many in self._waiting.values() for one in many if isinstance(one, CompletedFetch)]
        return sum(len(one) for one in {id(one): one for one in held}.values())

    def put(self, buffered: CompletedFetch) -> None:
        self._waiting.setdefault(buffered.partition, []).append(buffered)

    def fail(self, partition: TopicPartition, error: Exception, position_epoch: int) -> None:
        self._waiting.setdefault(partition, []).append(FetchFailure(error, position_epoch))

    def keep_for_user(self, partition: TopicPartition) -> bool:
        """Fetch the partition again only when the user has taken what waits. False when nothing waits."""
        many = self._waiting.get(partition)
        if many is None:
            return False
        if isinstance(many[-1], CompletedFetch):
            many[-1].end = None
        return True

    def next_fetch(self, partition: TopicPartition, position: Position) -> FetchOffset | None:
        """The next fetch: at the position, or after the one fetch that waits; None: no fetch now."""
        many = self._waiting.get(partition)
        if many is None:
            return None if position.offset is None else FetchOffset(position.offset, position.leader_epoch)
        last = many[-1]
        if len(many) > 1 or not isinstance(last, CompletedFetch) or last.end is None:
            return None
        return FetchOffset(*last.end)

    def has_any(self) -> bool:
        """Whether `take` has something to give or to raise."""
        return next(self._ready(), None) is not None

    def full_nodes(self) -> set[int]:
        """The brokers with two responses waiting; those of paused partitions do not count."""
        fetches = [fetch for _, waiting in self._ready() for fetch in waiting if isinstance(fetch, CompletedFetch)]
        nodes = [node for node, _ in {(fetch.node, fetch.answer) for fetch in fetches}]
        return {node for node in nodes if nodes.count(node) > 1}

    def clear(self) -> None:
        self._waiting.clear()

    def discard_stale(self) -> None:
        """Throw away fetches of earlier position epochs; free frames that only paused partitions keep."""
        for partition, many in list(self._waiting.items()):
            position = self._positions.find(partition)
            if position is None or position.position_epoch != many[0].position_epoch:
                del self._waiting[partition]
            elif position.paused:
                for one in many:
                    if isinstance(one, CompletedFetch):
                        one.copy_rest()

    def take(self, records_max: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records up to `records_max`, in the order in which they came; their positions are moved. Raises a failure."""
        taken: dict[TopicPartition, list[ConsumerRecord]] = {}
        for partition, many in list(self._ready()):
            if records_max <= 0:
                break
            one = many[0]
            if isinstance(one, FetchFailure):
                if taken:
                    break
                del self._waiting[partition]
                raise one.error
            try:
                records = self._taken(partition, one, records_max)
            except CorruptRecords:
                if taken:
                    break
                del self._waiting[partition]
                raise
            if records:
                taken[partition] = records
                records_max -= len(records)
        return taken

    def _taken(self, partition: TopicPartition, one: CompletedFetch, records_max: int) -> list[ConsumerRecord]:
        try:
            records = one.take(records_max)
        finally:
            position = self._positions.of(partition)
            position.offset = one.next_offset
            if one.leader_epoch >= 0:
                position.leader_epoch = one.leader_epoch
        if one.is_done:
            rest = self._waiting.pop(partition)[1:]
            if rest:  # in its turn, behind the others
                self._waiting[partition] = rest
        return records

    def _ready(self) -> Iterator[tuple[TopicPartition, list[CompletedFetch | FetchFailure]]]:
        for partition, many in self._waiting.items():
            position = self._positions.find(partition)
            if position is not None and position.position_epoch == many[0].position_epoch and not position.paused:
                yield partition, many
