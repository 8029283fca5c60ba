"""The start offset of each leader epoch, and Kafka's `leader-epoch-checkpoint` file. Pure.

Laws
    Epochs and their start offsets grow together; an epoch without records is replaced by the next.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

EPOCHS_FILE: Final = "leader-epoch-checkpoint"
UNDEFINED: Final = (-1, -1)


class BadCheckpoint(ValueError):
    """The text is not a checkpoint."""


class LeaderEpochs:
    """(epoch, start offset) in ascending order. Methods return True when they change it."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def latest(self) -> int:
        """-1 when none is known."""
        return self._epochs[-1] if self._epochs else -1

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Add an entry and remove those that contradict it. Returns whether the entries changed."""
        if epoch < 0 or (self._epochs and self._epochs[-1] == epoch and self._starts[-1] <= start_offset):
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    def at(self, offset: int) -> int:
        """The epoch of the record at `offset`; -1 when unknown."""
        at = bisect_right(self._starts, offset)
        return self._epochs[at - 1] if at else -1

    def end(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest epoch <= epoch, where it ended), as OffsetForLeaderEpoch answers; (-1, -1) when unknown."""
        if epoch < 0 or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED
        at = bisect_right(self._epochs, epoch)
        if at == len(self._epochs):
            return epoch, log_end_offset
        return (self._epochs[at - 1] if at else epoch), self._starts[at]

    def truncate(self, end_offset: int) -> bool:
        """Remove the epochs that start at `end_offset` or later. Returns whether the entries changed."""
        before = len(self._starts)
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
        return len(self._starts) != before

    def begin(self, start_offset: int) -> bool:
        """Move the log start: the epoch of `start_offset` starts there, older ones are removed."""
        at = bisect_right(self._starts, start_offset) - 1
        if at < 0 or (at == 0 and self._starts[0] == start_offset):
            return False
        del self._epochs[:at], self._starts[:at]
        self._starts[0] = start_offset
        return True

    def to_text(self) -> str:
        """Version 0, the count, and a line "epoch start-offset" for each."""
        return f"0\n{len(self)}\n" + "".join(f"{epoch} {start}\n" for epoch, start in self.entries())

    @classmethod
    def from_text(cls, text: str) -> LeaderEpochs:
        """Raises BadCheckpoint."""
        epochs = cls()
        try:
            version, count, *lines = text.splitlines()
            entries = [(int(epoch), int(start)) for epoch, start in map(str.split, lines)]
            if int(version) != 0 or int(count) != len(entries):
                raise BadCheckpoint("version or count is wrong")
        except ValueError as error:
            raise BadCheckpoint(str(error)) from error
        for epoch, start in entries:
            epochs.assign(epoch, start)
        return epochs
