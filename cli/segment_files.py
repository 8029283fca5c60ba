"""The files of partitions, opened for reading only: folders, segments, and the batches of a segment.

Laws
    A broker may be writing to the files. An incomplete batch at the end of a log is named, not an error; a wrong one
    ends the walk through its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from rota.cli.settings import UsageError
from rota.protocol.records.batch import BATCH_HEADER_BYTES, BatchHeader, check_batch, read_header
from rota.protocol.records.errors import CorruptBatch

SEGMENT: Final = re.compile(r"(\d{20})\.log", re.ASCII)
PARTITION: Final = re.compile(r"(.+)-(\d+)", re.ASCII)


class Batch(NamedTuple):
    """A batch in a file. `problem` is empty for a good one; `data` is None when the batch is incomplete."""

    position: int
    header: BatchHeader | None
    data: bytes | None
    problem: str


def partition_folders(path: Path) -> list[Path]:
    """Return the folders of partitions: the path itself, or those in it. Raises UsageError."""
    if not path.is_dir():
        raise UsageError(f"{path} is no folder")
    found = [each for each in sorted(path.iterdir()) if each.is_dir() and PARTITION.fullmatch(each.name)]
    if segment_files(path):
        return [path]
    if not found:
        raise UsageError(f"{path} has no segments, and no folder of a partition (TOPIC-NUMBER)")
    return found


def segment_files(path: Path) -> list[Path]:
    """Return the .log files of a partition's folder, oldest first, or the file itself."""
    if path.is_dir():
        return [each for each in sorted(path.iterdir()) if SEGMENT.fullmatch(each.name)]
    return [path] if SEGMENT.fullmatch(path.name) else []


def required_segments(path: Path) -> list[Path]:
    """Return the .log files of a path; none for a partition without records. Raises UsageError for another path."""
    found = segment_files(path)
    if not found and not (path.is_dir() and PARTITION.fullmatch(path.resolve().name)):
        raise UsageError(f"{path} is no folder of a partition and no segment (20 digits and .log)")
    return found


def batches(file: BinaryIO, *, with_data: bool = True) -> Iterator[Batch]:
    """Yield the batches of a log file up to its end or its first problem."""
    position = 0
    while head := file.read(BATCH_HEADER_BYTES):
        if len(head) < BATCH_HEADER_BYTES:
            yield Batch(position, None, None, f"{len(head)} bytes of an incomplete batch")
            return
        try:
            header = read_header(head)
            data = head + file.read(header.size_bytes - BATCH_HEADER_BYTES)
            if len(data) < header.size_bytes:
                yield Batch(position, header, None, f"{len(data)} of {header.size_bytes} bytes: an incomplete batch")
                return
            check_batch(data, 0, header, compacted=True)
        except CorruptBatch as failure:
            yield Batch(position, None, None, str(failure))
            return
        yield Batch(position, header, data if with_data else None, "")
        position += header.size_bytes
