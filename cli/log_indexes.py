"""`rota logs indexes`: the entries of a segment's indexes, compared with its batches.

Laws
    An entry of the offset index has the last offset of a batch and its position, one of the time index the last offset
    of a batch. An entry of the index of aborted transactions (`.txnindex`) has the offset of an abort marker of its
    producer, which comes after the transaction's first record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import Any, Final, NamedTuple

from rota.cli.arguments import iso_time
from rota.cli.segment_files import Batch, batches, required_segments
from rota.cli.session import EXIT_FAILED, Session
from rota.cli.text import Table
from rota.protocol.records.control import read_marker
from rota.protocol.records.errors import CorruptBatch

OFFSET_ENTRY, TIME_ENTRY = Struct(">ii"), Struct(">qi")
ABORTED_ENTRY: Final = Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset
ABORTED_VERSION: Final = 0
COLUMNS: Final = (
    "SEGMENT",
    "INDEX",
    "OFFSET",
    "POSITION",
    "TIME",
    "PRODUCER",
    "FIRST OFFSET",
    "STABLE OFFSET",
    "PROBLEM",
)
FIELDS: Final = (
    "segment", "index", "offset", "position", "time", "producer_id", "first_offset", "last_stable_offset", "problem",
)  # fmt: skip


async def show_indexes(session: Session) -> int | None:
    rows = [row for path in required_segments(session.options.path) for row in index_documents(path)]
    cells = [tuple(row[name] for name in FIELDS) for row in rows]
    session.out.show({"entries": rows}, Table(COLUMNS, cells, empty="no index entries"))
    return EXIT_FAILED if any(row["problem"] for row in rows) else None


class IndexedBatch(NamedTuple):
    """A batch of the segment; of one that aborts a transaction, `aborted` is the producer id."""

    position: int
    last_offset: int
    aborted: int | None


def index_documents(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of the three indexes of a segment."""
    with path.open("rb") as file:
        found = {each.last_offset: each for each in map(_indexed, batches(file)) if each is not None}
    base = int(path.stem)
    for relative, position in _entries(path.with_suffix(".index"), OFFSET_ENTRY):
        batch = found.get(base + relative)
        is_right = batch is not None and batch.position == position
        problem = None if is_right else "no batch ends with this offset at this position"
        yield _row(path, "offset", offset=base + relative, position=position, problem=problem)
    for timestamp, relative in _entries(path.with_suffix(".timeindex"), TIME_ENTRY):
        problem = None if base + relative in found else "no batch ends with this offset"
        yield _row(path, "time", offset=base + relative, time=iso_time(timestamp), problem=problem)
    yield from _aborted_transactions(path, found)


def _indexed(batch: Batch) -> IndexedBatch | None:
    header = batch.header
    if header is None or batch.data is None:
        return None
    is_abort = header.is_control and _is_abort(batch.data)
    return IndexedBatch(batch.position, header.last_offset, header.producer_id if is_abort else None)


def _is_abort(data: bytes) -> bool:
    """Return whether it is an abort marker; also for one that compaction has emptied, whose kind is not known."""
    try:
        marker = read_marker(data)
    except CorruptBatch:
        return False
    return marker is None or not marker.is_commit


def _entries(path: Path, entry: Struct) -> list[tuple[int, int]]:
    """Return the entries of an index file. Zeros at its end are room that was never used."""
    data = _read(path)
    found = list(entry.iter_unpack(data[: len(data) - len(data) % entry.size]))
    while found and not any(found[-1]):
        found.pop()
    return found


def _aborted_transactions(path: Path, found: Mapping[int, IndexedBatch]) -> Iterator[dict[str, Any]]:
    """Yield the entries of the index of aborted transactions, and what is left of a file that ends within one."""
    data, last = _read(path.with_suffix(".txnindex")), -1
    rest = len(data) % ABORTED_ENTRY.size
    for version, producer_id, first, offset, stable in ABORTED_ENTRY.iter_unpack(data[: len(data) - rest]):
        batch = found.get(offset)
        if version != ABORTED_VERSION:
            yield _row(path, "transaction", problem=f"version {version} is not known")
            continue
        problem = None
        if batch is None or batch.aborted != producer_id:
            problem = "no abort marker of this producer at this offset"
        elif offset <= last or first > offset:
            problem = "not in the order of offsets"
        position = None if batch is None else batch.position
        yield _row(path, "transaction", offset=offset, position=position, producer_id=producer_id, first_offset=first,
                   last_stable_offset=stable, problem=problem)  # fmt: skip
        last = max(last, offset)
    if rest:
        yield _row(path, "transaction", problem=f"{rest} bytes of an incomplete entry")


def _read(path: Path) -> bytes:
    """Return the content of an index; nothing when there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _row(path: Path, index: str, **values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(FIELDS), "segment": path.name, "index": index, **values}
