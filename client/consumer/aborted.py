"""Which batches of a FetchResponse belong to aborted transactions (KIP-98). Pure.

Laws
    A transactional batch is hidden if its producer has an aborted transaction that began at or before it and whose
    abort marker has not been read yet.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rota.protocol.messages.fetch import AbortedTransaction
from rota.protocol.records.batch import BatchHeader
from rota.protocol.records.record import read_records

ABORT: Final = 0
_MARKER: Final = Struct(">hh")  # version, type: the key of a control record


class Aborted:
    """Call `is_aborted` and `marked` with the batches in the order of their offsets."""

    __slots__ = ("_producers", "_to_come")

    def __init__(self, transactions: tuple[AbortedTransaction, ...]) -> None:
        self._to_come = sorted(transactions, key=lambda transaction: transaction.first_offset, reverse=True)
        self._producers: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction: read_committed skips its records."""
        self._begin(header.last_offset)
        return header.is_transactional and header.producer_id in self._producers

    def marked(self, header: BatchHeader, raw: bytes) -> None:
        """A control batch: the end of its producer's transaction. Raises CorruptBatch."""
        self._begin(header.last_offset)
        for marker in read_records(raw) if header.count else ():
            if len(marker.key or b"") >= _MARKER.size and _MARKER.unpack_from(marker.key or b"")[1] == ABORT:
                self._producers.discard(header.producer_id)

    def _begin(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            self._producers.add(self._to_come.pop().producer_id)
