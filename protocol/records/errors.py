"""Errors of record batches. The root is `CorruptBatch`; each subclass has its own error code on the wire."""

from __future__ import annotations


class CorruptBatch(ValueError):
    """Not a record batch: incomplete, inconsistent, or with a wrong checksum (CORRUPT_MESSAGE, 2)."""


class InvalidBatch(CorruptBatch):
    """A batch with a valid checksum and records that are not as its header says, or no records (INVALID_RECORD, 87)."""


class UnsupportedMagic(CorruptBatch):
    """Message format 0 or 1, which Kafka 4.0 removed (UNSUPPORTED_FOR_MESSAGE_FORMAT, 43)."""
