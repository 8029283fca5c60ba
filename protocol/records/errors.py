"""What can be wrong with record batches. One root, `CorruptBatch`; each refinement is another answer on the wire."""

from __future__ import annotations


class CorruptBatch(ValueError):
    """Bytes that are not a record batch: cut, inconsistent, wrong checksum (CORRUPT_MESSAGE, 2)."""


class InvalidBatch(CorruptBatch):
    """A whole batch with a good checksum that contradicts itself: counts, offsets, codec (INVALID_RECORD, 87)."""


class UnsupportedMagic(CorruptBatch):
    """Message format 0 or 1, which Kafka dropped with 4.0 (UNSUPPORTED_FOR_MESSAGE_FORMAT, 43)."""
