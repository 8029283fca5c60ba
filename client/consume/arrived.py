"""What has come from brokers and was not taken yet: answers and failures, in the order in which they came. Pure.

Laws
    A partition waits with one answer at most.
    A failure is raised once, in its turn, and never before records that came earlier were given.
    What a seek, a reset or a rebalance made stale is thrown away.
    A paused partition keeps what it has, and nothing of what came in the same frame.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.client.consume.buffered import Buffered
from rota.client.consume.positions import Positions
from rota.client.errors import CorruptRecords
from rota.client.types import ConsumerRecord, TopicPartition


class Failed:
    """What a fetch met, for the user."""

    __slots__ = ("error", "turn")

    def __init__(self, error: Exception, turn: int) -> None:
        self.error, self.turn = error, turn


class Arrived:
    """`put` and `fail`, `take`."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._waiting: dict[TopicPartition, Buffered | Failed] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._waiting

    @property
    def held_bytes(self) -> int:
        """The memory behind all that waits."""
        held = [one.held for one in self._waiting.values() if isinstance(one, Buffered)]
        return sum(len(one) for one in {id(one): one for one in held}.values())

    def put(self, buffered: Buffered) -> None:
        self._waiting[buffered.partition] = buffered

    def fail(self, partition: TopicPartition, error: Exception, turn: int) -> None:
        self._waiting[partition] = Failed(error, turn)

    def has_any(self) -> bool:
        """Whether `take` has something to give or to raise."""
        return next(self._ready(), None) is not None

    def nodes(self) -> set[int]:
        """The brokers whose answers are not all taken; what is paused does not count."""
        return {one.node for _, one in self._ready() if isinstance(one, Buffered)}

    def clear(self) -> None:
        self._waiting.clear()

    def tidy(self) -> None:
        """Throw away what is stale; let go of frames of which only paused partitions are left."""
        for partition, one in list(self._waiting.items()):
            position = self._positions.find(partition)
            if position is None or position.turn != one.turn:
                del self._waiting[partition]
            elif position.paused and isinstance(one, Buffered):
                one.own()

    def take(self, records_max: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records up to `records_max`, in the order in which they came; their positions are moved. Raises a failure."""
        taken: dict[TopicPartition, list[ConsumerRecord]] = {}
        for partition, one in list(self._ready()):
            if records_max <= 0:
                break
            if isinstance(one, Failed):
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

    def _taken(self, partition: TopicPartition, one: Buffered, records_max: int) -> list[ConsumerRecord]:
        try:
            records = one.take(records_max)
        finally:
            position = self._positions.of(partition)
            position.offset = one.next_offset
            if one.leader_epoch >= 0:
                position.leader_epoch = one.leader_epoch
        if one.is_done:
            del self._waiting[partition]
        return records

    def _ready(self) -> Iterator[tuple[TopicPartition, Buffered | Failed]]:
        for partition, one in self._waiting.items():
            position = self._positions.find(partition)
            if position is not None and position.turn == one.turn and not position.paused:
                yield partition, one
