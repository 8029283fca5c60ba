"""The partition of records without a key: it changes after `batch_bytes` bytes (KIP-794). Pure.

Laws
    The partition changes only between two batches, and only after `batch_bytes` bytes, so that batches are filled.
    A partition without a leader is not chosen while another one has a leader.
    Over time every partition that has a leader gets the same share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Draw = Callable[[int], int]  # a random number below the argument


class Sticky:
    """The choice for one topic. `draw` returns random numbers."""

    __slots__ = ("_batch_bytes", "_draw", "_led", "_taken_bytes", "partition")

    def __init__(self, batch_bytes: int, draw: Draw) -> None:
        self._batch_bytes, self._draw = batch_bytes, draw
        self._led: tuple[int, ...] = ()
        self._taken_bytes = 0
        self.partition = -1

    def update(self, partitions: Sequence[int], led: Sequence[int]) -> None:
        """Set the partitions of the topic, and those of them with a known leader."""
        self._led = tuple(led) or tuple(partitions)
        if self.partition not in self._led:
            self._choose()

    def filled(self, size_bytes: int) -> int:
        """A batch of that size in `partition` is full: return the partition of the next batch."""
        self._taken_bytes += size_bytes
        if self._taken_bytes >= self._batch_bytes:
            self._choose()
        return self.partition

    def _choose(self) -> None:
        self._taken_bytes = 0
        self.partition = self._led[self._draw(len(self._led))] if self._led else -1
