"""What a consumer reads: assigned partitions, where each stands, which are paused. Pure.

Laws
    A position is the offset after the last record that the user was handed, or what a seek or a reset said.
    What was fetched for a position that is no longer the position is thrown away (`epoch` of a partition's state).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rota.client.types import OffsetAndMetadata, TopicPartition


@dataclass(slots=True)
class Position:
    """One assigned partition. `offset` None: not known yet; then `reset` says how it is found, None: committed offset
    first, auto_offset_reset after it. `turn` grows with every seek, assignment and reset."""

    offset: int | None = None
    leader_epoch: int = -1
    reset: str | None = None
    paused: bool = False
    turn: int = 0
    high_watermark: int | None = None
    log_start: int | None = None


class Positions:
    """The assigned partitions by name."""

    def __init__(self) -> None:
        raise NotImplementedError

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        raise NotImplementedError

    @property
    def paused(self) -> frozenset[TopicPartition]:
        raise NotImplementedError

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """What stays keeps its position and its pause; what is new has none; the rest is forgotten."""
        raise NotImplementedError

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        raise NotImplementedError

    def of(self, partition: TopicPartition) -> Position:
        """Raises IllegalUse when it is not assigned, naming what is."""
        raise NotImplementedError

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        raise NotImplementedError

    def reset(self, partition: TopicPartition, how: str) -> None:
        """`how`: earliest, latest, by_duration:…; the position is unknown until it is found."""
        raise NotImplementedError

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        raise NotImplementedError

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        raise NotImplementedError

    def without_offset(self) -> tuple[TopicPartition, ...]:
        """Those whose position has to be found before they can be fetched."""
        raise NotImplementedError

    def consumed(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What may be committed now: the known positions, with their leader epochs."""
        raise NotImplementedError
