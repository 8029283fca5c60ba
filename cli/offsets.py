"""`rota offsets`: the first and last offsets of partitions, and the offsets at a time."""

from __future__ import annotations

from argparse import ArgumentParser
from itertools import chain
from typing import TYPE_CHECKING, Any

from rota.cli.arguments import add_client_options, iso_time, time_ms, topic_and_partitions
from rota.cli.session import Session, client_command
from rota.cli.settings import UsageError
from rota.cli.text import Table
from rota.client.types import TopicPartition

if TYPE_CHECKING:
    from rota.client import Admin


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.description = "Print start, end and number of offsets of each partition, and the first record at a time."
    parser.add_argument("topics", metavar="TOPIC[:0,1]", nargs="+", type=topic_and_partitions)
    parser.add_argument(
        "--at", type=time_ms, metavar="TIME", help="also the first record at or after it: ISO 8601, or milliseconds"
    )
    parser.add_argument("--newest", action="store_true", help="also the record with the newest timestamp")
    parser.add_argument("--read-committed", action="store_true", help="the end is the last stable offset")
    add_client_options(parser)
    parser.set_defaults(run=client_command(show_offsets))


async def show_offsets(session: Session) -> None:
    from rota.client import EARLIEST, LATEST, MAX_TIMESTAMP

    options = session.options
    isolation = "read_committed" if options.read_committed else "read_uncommitted"
    async with session.admin() as admin:
        partitions = await _partitions(admin, options.topics)
        starts = await admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
        ends = await admin.list_offsets(dict.fromkeys(partitions, LATEST), isolation_level=isolation)
        times = {"at": options.at, "newest": MAX_TIMESTAMP if options.newest else None}
        found = {
            name: await admin.list_offsets(dict.fromkeys(partitions, time))
            for name, time in times.items()
            if time is not None
        }
    rows = []
    for each in partitions:
        start, end = starts[each], ends[each]
        row: dict[str, Any] = {"topic": each.topic, "partition": each.partition}
        row |= {"start": start and start.offset, "end": end and end.offset}
        row["offsets"] = row["end"] - row["start"] if start and end else None
        for name, offsets in found.items():
            at = offsets[each]
            row[name] = None if at is None or at.offset < 0 else {"offset": at.offset, "timestamp": at.timestamp}
        rows.append(row)
    session.out.show({"partitions": rows}, Table(_columns(found), [_cells(row, found) for row in rows]))


def _columns(found: dict[str, Any]) -> list[str]:
    extra = [column for name in found for column in (name.upper(), f"{name.upper()} TIME")]
    return ["TOPIC", "PARTITION", "START", "END", "OFFSETS", *extra]


def _cells(row: dict[str, Any], found: dict[str, Any]) -> list[object]:
    cells = [row[name] for name in ("topic", "partition", "start", "end", "offsets")]
    for name in found:
        at = row[name]
        cells += [None, None] if at is None else [at["offset"], iso_time(at["timestamp"])]
    return cells


async def _partitions(admin: Admin, given: list[str | list[TopicPartition]]) -> list[TopicPartition]:
    """Return the partitions of the arguments in order. Raises AdminFailed, UsageError."""
    named = chain.from_iterable([each] if isinstance(each, str) else [part.topic for part in each] for each in given)
    topics = await admin.describe_topics(dict.fromkeys(named))
    existing = {name: [each.partition for each in topic.partitions] for name, topic in topics.items()}
    found: list[TopicPartition] = []
    for each in given:
        found += [TopicPartition(each, number) for number in existing[each]] if isinstance(each, str) else each
    for topic, partition in found:
        if partition not in existing[topic]:
            raise UsageError(f"{topic} has no partition {partition}: it has 0 to {len(existing[topic]) - 1}")
    return list(dict.fromkeys(found))
