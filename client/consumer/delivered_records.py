"""The records that were delivered to the user, and those that were taken but not delivered yet. Pure.

`async for` and `getone` take the records of a whole poll at once and deliver them one at a time; the positions are
then after all of them. This class separates the delivered records from those that were only taken.

Laws
    C1: `done` never includes a record that was not delivered; `before_last` never includes a record that was delivered
    in the last call or not delivered.
    If all records of a partition were delivered, both have its position.
    Records that were put back are taken again from the same offset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rota.client.checks import topic_partitions
from rota.client.consumer.positions import Positions
from rota.client.types import ConsumerRecord, OffsetAndMetadata, TopicPartition

Batch = dict[TopicPartition, list[ConsumerRecord]]
Committable = dict[TopicPartition, OffsetAndMetadata]


class DeliveredRecords:
    """Call `begin` with each poll-like call and `put` with the taken records; `left.pop()` is the next record."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self.left: list[ConsumerRecord] = []  # taken and not delivered, in reverse order
        self.shortcut_until = 0.0  # loop time until which a call only takes a record
        self.in_hand: ConsumerRecord | None = None  # the record of the last call, if it returned one
        self._starts: Committable = {}  # the first offsets of the records of the last call, if it returned many

    def begin(self) -> None:
        """Begin a call: the records of the last call count as processed."""
        self.in_hand = None
        self._starts = {}

    def put(self, fetched: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> None:
        """Add taken records, which are delivered one by one."""
        self.left[:0] = [record for records in reversed(list(fetched.values())) for record in reversed(records)]

    def one(self) -> ConsumerRecord:
        """Deliver the next record."""
        record = self.in_hand = self.left.pop()
        return record

    def many(self, records_max: int) -> Batch:
        """Deliver up to `records_max` of the taken records."""
        batch: Batch = {}
        for _ in range(min(records_max, len(self.left))):
            record = self.left.pop()
            batch.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return self.all_of(batch)

    def all_of(self, batch: Batch) -> Batch:
        """Deliver a whole batch."""
        self._starts = {partition: _at(records[0]) for partition, records in batch.items()}
        return batch

    def done(self) -> Committable:
        """Return the offsets to commit if all delivered records are processed."""
        return self._with(self._waiting())

    def before_last(self) -> Committable:
        """Return the offsets to commit if the records of the last call are not processed."""
        last = self._starts
        if self.in_hand is not None:
            last = {TopicPartition(self.in_hand.topic, self.in_hand.partition): _at(self.in_hand)}
        return self._with(self._waiting() | last)

    def next_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset of the partition's next record that was taken and not delivered; None if there is none."""
        return next((record.offset for record in reversed(self.left) if _of(record) == partition), None)

    def put_back(self, partitions: Collection[TopicPartition]) -> None:
        """Move the positions back to the undelivered records of these partitions, which are taken again."""
        for partition, at in self._waiting().items():
            if partition in partitions and partition in self._positions.assigned:
                self._positions.seek(partition, at.offset, at.leader_epoch)
        self._without(partitions)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the undelivered records and the offsets of partitions that were revoked or sought."""
        self._without(partitions)
        self._starts = {partition: at for partition, at in self._starts.items() if partition not in partitions}
        if self.in_hand is not None and _of(self.in_hand) in partitions:
            self.in_hand = None

    def _without(self, partitions: Collection[TopicPartition]) -> None:
        if self.left:
            self.left = [record for record in self.left if _of(record) not in partitions]

    def _waiting(self) -> Committable:
        """Return the offset of the first undelivered record of each partition."""
        first = {_of(record): record for record in self.left}
        return {partition: _at(record) for partition, record in first.items()}

    def _with(self, earlier: Mapping[TopicPartition, OffsetAndMetadata]) -> Committable:
        consumed = dict(self._positions.consumed())
        return consumed | {partition: at for partition, at in earlier.items() if partition in consumed}


def as_partitions(partitions: TopicPartition | Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Return one partition or several as a tuple."""
    given = (partitions,) if isinstance(partitions, TopicPartition) else partitions
    return topic_partitions("partitions", given)


def _of(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _at(record: ConsumerRecord) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset, "", record.leader_epoch)
