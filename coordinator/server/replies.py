"""A reply on its way out: its place among the others, and its bytes.

A reply that is larger than WRITE_CHUNK_BYTES keeps its record batches as views, so that they are not copied again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from rota.coordinator.server.dispatch import Known
from rota.coordinator.server.parked import Parked

Piece = bytes | memoryview

pack_lead = struct.Struct(">ii").pack  # length, correlation id
pack_lead_tagged = struct.Struct(">iib").pack  # and no tagged fields


class Slot:
    """The place of one reply. `pieces` is None until the reply is known, empty when there will be none.

    `size` is what the slot makes us keep: the request, then the reply while others are before it.
    """

    __slots__ = ("correlation_id", "known", "parked", "pieces", "size", "told")

    def __init__(self, known: Known, correlation_id: int, size: int, told: Callable[[Slot, Any], None]) -> None:
        self.known, self.correlation_id, self.size, self.told = known, correlation_id, size, told
        self.parked: Parked[Any] | None = None
        self.pieces: list[Piece] | None = None

    def answered(self, value: Any) -> None:
        """Whoever parked the request has its reply."""
        self.told(self, value)

    def fill(self, value: Any) -> int:
        """Put the bytes of the reply in; how many they are."""
        self.pieces = [] if value is None else framed(self.known, self.correlation_id, value)
        return sum(map(len, self.pieces))


def framed(known: Known, correlation_id: int, value: Any) -> list[Piece]:
    """A response with its length and header."""
    pieces: list[Piece] = known.parts(value) if known.bulky else [known.encode(value)]
    size = sum(map(len, pieces))
    if known.tagged:
        return [pack_lead_tagged(size + 5, correlation_id, 0), *pieces]
    return [pack_lead(size + 4, correlation_id), *pieces]
