"""The records that the user was given, and those that wait to be given one by one. Pure.

`async for` and `getone` take the records of a whole poll at once and deliver them one at a time; the positions are
then after all of them. This class knows the difference between the records taken and those delivered.

Laws
    C1: `done` never passes a record that was not delivered; `before_last` never passes one that was delivered in the
    last call, or not at all.
    When all records of a partition were delivered, both have its position.
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
    """`begin` with each poll-like call; `put` what was taken; `left.pop()` is the next record."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self.left: list[ConsumerRecord] = []  # the next one last: what was taken and not delivered
        self.shortcut_until = 0.0  # the loop's time until which calls may take records and do nothing else
        self.in_hand: ConsumerRecord | None = None  # the record of the last call, when it gave one
        self._starts: Committable = {}  # where the records of the last call begin, when it gave many

    def begin(self) -> None:
        """A call begins: the user is done with the records of the last one."""
        self.in_hand = None
        self._starts = {}

    def put(self, fetched: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> None:
        """Add records that wait to be delivered one by one."""
        self.left[:0] = [record for records in reversed(list(fetched.values())) for record in reversed(records)]

    def one(self) -> ConsumerRecord:
        """Deliver the next record."""
        record = self.in_hand = self.left.pop()
        return record

    def many(self, records_max: int) -> Batch:
        """Deliver up to so many of the waiting records."""
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
        """What may be committed when the user is done with everything that was delivered."""
        return self._with(self._waiting())

    def before_last(self) -> Committable:
        """The same when the user is not done with what the last call gave."""
        last = self._starts
        if self.in_hand is not None:
            last = {TopicPartition(self.in_hand.topic, self.in_hand.partition): _at(self.in_hand)}
        return self._with(self._waiting() | last)

    def next_offset(self, partition: TopicPartition) -> int | None:
        """The offset of the next waiting record of the partition; None: no record waits."""
        return next((record.offset for record in reversed(self.left) if _of(record) == partition), None)

    def put_back(self, partitions: Collection[TopicPartition]) -> None:
        """Move the positions back to the waiting records of these partitions, which are taken again."""
        for partition, at in self._waiting().items():
            if partition in partitions and partition in self._positions.assigned:
                self._positions.seek(partition, at.offset, at.leader_epoch)
        self._without(partitions)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions were revoked or moved by the user: drop their waiting records and their commits."""
        self._without(partitions)
        self._starts = {partition: at for partition, at in self._starts.items() if partition not in partitions}
        if self.in_hand is not None and _of(self.in_hand) in partitions:
            self.in_hand = None

    def _without(self, partitions: Collection[TopicPartition]) -> None:
        if self.left:
            self.left = [record for record in self.left if _of(record) not in partitions]

    def _waiting(self) -> Committable:
        """The first record of each partition that waits."""
        first = {_of(record): record for record in self.left}
        return {partition: _at(record) for partition, record in first.items()}

    def _with(self, earlier: Mapping[TopicPartition, OffsetAndMetadata]) -> Committable:
        consumed = dict(self._positions.consumed())
        return consumed | {partition: at for partition, at in earlier.items() if partition in consumed}


def as_partitions(partitions: TopicPartition | Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """One partition or several, as the user gave them."""
    given = (partitions,) if isinstance(partitions, TopicPartition) else partitions
    return topic_partitions("partitions", given)


def _of(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _at(record: ConsumerRecord) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset, "", record.leader_epoch)
