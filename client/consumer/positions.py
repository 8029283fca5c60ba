"""What a consumer reads: assigned partitions, where each stands, which are paused. Pure.

Laws
    A position is the offset after the last record that was returned to the user, or the offset of a seek or a reset.
    Each seek, assignment and reset gives the position a new `position_epoch`. What was fetched for an earlier one is
    thrown away. No epoch is given twice, also not to a partition that is revoked and assigned again.
    A position belongs to one topic: not to one that is created again under its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rota.client.errors import IllegalUse
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.wire import UUID_ZERO


@dataclass(slots=True)
class Position:
    """One assigned partition. `offset` None: not known yet; then `reset` says how it is found, None: committed offset
    first, auto_offset_reset after it. `leader_epoch` is that of the last record before it, -1 unknown. `topic_id`: of
    the topic that it belongs to, zero until the metadata have it."""

    offset: int | None = None
    leader_epoch: int = -1
    reset: str | None = None
    paused: bool = False
    position_epoch: int = 0
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start: int | None = None
    topic_id: bytes = UUID_ZERO


class Positions:
    """The assigned partitions by name."""

    def __init__(self) -> None:
        self._all: dict[TopicPartition, Position] = {}
        self._epochs = 0

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        return frozenset(self._all)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(partition for partition, position in self._all.items() if position.paused)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions that were assigned before keep their position and their pause; the others begin without."""
        before = self._all
        self._all = {
            partition: before.get(partition) or Position(position_epoch=self._next_epoch()) for partition in partitions
        }

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._all.pop(partition, None)

    def of(self, partition: TopicPartition) -> Position:
        """Raises IllegalUse when it is not assigned, naming what is."""
        found = self._all.get(partition)
        if found is None:
            known = ", ".join(map(str, self._all)) or "nothing"
            raise IllegalUse(f"{partition} is not assigned to this consumer; assigned: {known}")
        return found

    def find(self, partition: TopicPartition) -> Position | None:
        """Return the same as `of`, or None when it is not assigned."""
        return self._all.get(partition)

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Raises IllegalUse for what is not assigned and for an offset below 0."""
        if offset < 0:
            raise IllegalUse(f"offset {offset} of {partition}: the first offset of a log is 0")
        position = self.of(partition)
        position.offset, position.leader_epoch, position.reset = offset, leader_epoch, None
        position.topic_id = UUID_ZERO
        position.position_epoch = self._next_epoch()

    def reset(self, partition: TopicPartition, how: str) -> None:
        """`how`: earliest, latest, by_duration:…; the position is unknown until it is found."""
        position = self.of(partition)
        position.offset, position.leader_epoch, position.reset = None, -1, how
        position.topic_id = UUID_ZERO
        position.position_epoch = self._next_epoch()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """All or, with IllegalUse, none."""
        for position in [self.of(partition) for partition in partitions]:
            position.paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """All or, with IllegalUse, none."""
        for position in [self.of(partition) for partition in partitions]:
            position.paused = False

    def fetchable(self) -> Iterator[tuple[TopicPartition, Position]]:
        """The partitions that can be fetched: not paused, and with an offset."""
        for partition, position in self._all.items():
            if position.offset is not None and not position.paused:
                yield partition, position

    def without_offset(self) -> tuple[TopicPartition, ...]:
        """The partitions whose position has to be found before they can be fetched."""
        return tuple(partition for partition, position in self._all.items() if position.offset is None)

    def consumed(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What may be committed now: the known positions, with their leader epochs."""
        return {
            partition: OffsetAndMetadata(position.offset, leader_epoch=position.leader_epoch)
            for partition, position in self._all.items()
            if position.offset is not None
        }

    def _next_epoch(self) -> int:
        self._epochs += 1
        return self._epochs
