"""`rota logs`: segments and batches of a folder, without a broker. log_indexes.py has its indexes."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import iso_time, subcommands, whole
from rota.cli.formats import FORMATS, decode
from rota.cli.internal_records import internal_record
from rota.cli.log_indexes import show_indexes
from rota.cli.progress import Progress
from rota.cli.segment_files import PARTITION, Batch, batches, partition_folders, required_segments, segment_files
from rota.cli.session import EXIT_FAILED, CommandBody, Session, client_command
from rota.cli.text import GAP, Table, escaped
from rota.protocol.records.batch import BatchHeader
from rota.protocol.records.control import read_marker
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import read_records

if TYPE_CHECKING:
    from rota.cli.arguments import Subcommands

SEGMENT_COLUMNS: Final = ("PARTITION", "SEGMENT", "BYTES", "BATCHES", "RECORDS", "LAST OFFSET", "FIRST TIME", "PROBLEM")


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = subcommands(parser)
    add = _add(commands, "segments", show_segments, "show the segments of partitions, each batch checked")
    add.add_argument("path", metavar="FOLDER", type=Path, help="a data folder, or the folder of a partition")
    add = _add(commands, "dump", dump, "print batches, or with --records their records, internal ones decoded")
    add.add_argument("path", metavar="PATH", type=Path, help="the folder of a partition, or a .log file")
    add.add_argument("--records", action="store_true", help="the records of each batch")
    add.add_argument("--from", dest="start", type=whole(0), default=0, metavar="OFFSET", help="from this offset on")
    add.add_argument("--max", type=whole(1), metavar="N", help="end after N batches")
    add.add_argument("--key-format", choices=FORMATS, default="string", help="of keys that are not decoded")
    add.add_argument("--value-format", choices=FORMATS, default="string", help="of values that are not decoded")
    add = _add(commands, "indexes", show_indexes, "show the entries of the three indexes, compared with the log")
    add.add_argument("path", metavar="PATH", type=Path, help="the folder of a partition, or a .log file")


def _add(commands: Subcommands, name: str, body: CommandBody, summary: str) -> ArgumentParser:
    parser: ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[:1].upper()}{summary[1:]}.", allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=client_command(body), verbose=False)
    return parser


# ---- segments


async def show_segments(session: Session) -> int | None:
    folders = partition_folders(session.options.path)
    files = [(folder.name, file) for folder in folders for file in segment_files(folder)]
    rows = []
    with Progress("checking", "bytes", sum(file.stat().st_size for _, file in files)) as progress:
        for partition, file in files:
            rows.append(segment_document(partition, file))
            progress.advance(rows[-1]["bytes"])
    table = Table(SEGMENT_COLUMNS, [tuple(row.values()) for row in rows], empty="no segments")
    session.out.show({"segments": rows}, table)
    return EXIT_FAILED if any(row["problem"] for row in rows) else None


def segment_document(partition: str, path: Path) -> dict[str, Any]:
    """Return what is in a segment as JSON."""
    count = records = 0
    last: int | None = None
    first_ms: int | None = None
    problem = None
    with path.open("rb") as file:
        for batch in batches(file, with_data=False):
            if batch.header is None or batch.problem:
                problem = f"at {batch.position}: {batch.problem}"
                continue
            count, records, last = count + 1, records + batch.header.count, batch.header.last_offset
            first_ms = batch.header.base_timestamp if first_ms is None else first_ms
    return {
        "partition": partition,
        "segment": path.name,
        "bytes": path.stat().st_size,
        "batches": count,
        "records": records,
        "last_offset": last,
        "first_time": iso_time(first_ms),
        "problem": problem,
    }


# ---- dump


async def dump(session: Session) -> int | None:
    options, out = session.options, session.out
    left = options.max
    code = None
    for path in required_segments(options.path):
        found = PARTITION.fullmatch(path.parent.resolve().name)
        topic = found[1] if found else ""
        with path.open("rb") as file:
            for batch in batches(file):
                if batch.header is not None and not batch.problem and batch.header.last_offset < options.start:
                    continue
                if left == 0:
                    return code
                left = None if left is None else left - 1
                code = EXIT_FAILED if batch.problem else code
                _print_batch(session, path.name, batch)
                if options.records and batch.data is not None:
                    _print_records(session, topic, batch)
    out.flush()
    return code


def _print_batch(session: Session, file: str, batch: Batch) -> None:
    found = batch_document(file, batch)
    shown = (
        f"{name}={value}" for name, value in found.items() if not (value is None or value is False or name == "kind")
    )
    session.out.event(found, escaped(GAP.join(shown)), flush=False)


def batch_document(file: str, batch: Batch) -> dict[str, Any]:
    """Return a batch as JSON."""
    header = batch.header
    if header is None or batch.problem:
        return {"kind": "problem", "file": file, "position": batch.position, "problem": batch.problem}
    return {
        "kind": "batch",
        "file": file,
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.count,
        "bytes": header.size_bytes,
        "time": iso_time(header.max_timestamp),
        "leader_epoch": header.leader_epoch,
        "codec": header.codec.name.lower(),
        "producer_id": None if header.producer_id < 0 else header.producer_id,
        "producer_epoch": None if header.producer_id < 0 else header.producer_epoch,
        "base_sequence": None if header.base_sequence < 0 else header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "marker": _marker(header, batch.data),
    }


def _marker(header: BatchHeader, data: bytes | None) -> str | None:
    """Return commit or abort for the batch that ends a transaction."""
    if not header.is_control or data is None:
        return None
    try:
        marker = read_marker(data)
    except CorruptBatch:
        return None
    return None if marker is None else "commit" if marker.is_commit else "abort"


def _print_records(session: Session, topic: str, batch: Batch) -> None:
    options = session.options
    assert batch.data is not None
    assert batch.header is not None
    for record in read_records(batch.data):
        found: dict[str, Any] = {"kind": "record", "offset": record.offset, "time": iso_time(record.timestamp)}
        decoded = None if batch.header.is_control else internal_record(topic, record.key, record.value)
        if decoded is None:
            found |= {
                "key": decode(record.key, options.key_format),
                "value": decode(record.value, options.value_format),
            }
        else:
            found |= {"decoded": decoded["kind"], "key": decoded["key"], "value": decoded["value"]}
        found["headers"] = [[name, decode(value, "string")] for name, value in record.headers]
        shown = (f"{name}={value}" for name, value in found.items() if name != "kind" and value != [])
        session.out.event(found, f"  {escaped(GAP.join(shown))}", flush=False)
