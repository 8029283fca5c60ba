"""`rota consume`: print records of topics.

Laws
    Without --follow and --group it ends at the ends that the partitions had when it began.
    With --group a record is committed after it was printed: what was not printed is read again.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import add_client_options, group_id, whole
from rota.cli.formats import FIELDS, FORMATS, field_bytes, record_document
from rota.cli.session import Session, client_command
from rota.cli.settings import UsageError, config_of
from rota.cli.start_position import seek, start_position
from rota.client.errors import UnknownTopic
from rota.client.types import ConsumerRecord, TopicPartition
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from rota.client import Consumer

POLL_MS: Final = 500
POLL_RECORDS_MAX: Final = 500


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Print records: those that are there, or with --follow also those that come. A line has the value, or the "
        "fields of --show with tabs between them; --json prints an object a line."
    )
    add = parser.add_argument
    add("topics", metavar="TOPIC", nargs="+")
    add("--partition", type=whole(0), action="append", metavar="N", help="as often as needed; unset: all")
    add(
        "--from",
        dest="start",
        type=start_position,
        metavar="POSITION",
        help="earliest, latest, OFFSET, -N (the last N records of each partition) or @TIME; unset: earliest, "
        "with --follow latest",
    )
    add("--follow", action="store_true", help="go on with new records until Ctrl-C")
    add("--max", type=whole(1), metavar="N", help="end after N records")
    add("--group", type=group_id, metavar="GROUP", help="read as a member of a group, commit what was printed; follows")
    add("--key-format", choices=FORMATS, default="string")
    add("--value-format", choices=FORMATS, default="string")
    add("--show", type=_fields, default=("value",), metavar="FIELD,…", help=f"all, or of {', '.join(FIELDS)}")
    add("--read-committed", action="store_true", help="no records of open and aborted transactions")
    add_client_options(parser)
    parser.set_defaults(run=client_command(consume))


def _fields(text: str) -> tuple[str, ...]:
    from argparse import ArgumentTypeError

    given = FIELDS if text == "all" else tuple(text.split(","))
    unknown = [name for name in given if name not in FIELDS]
    if unknown:
        raise ArgumentTypeError(f"there is no field {', '.join(unknown)}; the fields are all, {', '.join(FIELDS)}")
    return tuple(name for name in FIELDS if name in given)


async def consume(session: Session) -> None:
    from rota.client import Consumer, ConsumerConfig

    options = session.options
    if options.group and (options.partition or (options.start and options.start.kind not in ("earliest", "latest"))):
        raise UsageError("--group takes no --partition, and --from earliest or latest: the group has its offsets")
    config = config_of(ConsumerConfig, _consumer_settings(session.settings(), options))
    await session.require_listener(config)
    async with Consumer(config) as consumer:
        batches = _follow_group(consumer, session) if options.group else _read(consumer, session)
        async with aclosing(batches):
            async for records in batches:
                _print(session, records)


def _consumer_settings(settings: dict[str, str], options: Namespace) -> dict[str, str]:
    """Without a group, records that retention deletes before they are read are the only ones left out."""
    own = {"enable.auto.commit": "false", "allow.auto.create.topics": "false", "auto.offset.reset": "earliest"}
    own["isolation.level"] = "read_committed" if options.read_committed else "read_uncommitted"
    if not options.group:
        return {name: value for name, value in settings.items() if name != "group.id"} | own
    own["auto.offset.reset"] = options.start.kind if options.start else "latest"
    return settings | own | {"group.id": options.group}


async def _follow_group(consumer: Consumer, session: Session) -> AsyncGenerator[list[ConsumerRecord], None]:
    """Yield records as a member of the group; commit those of the yield before."""
    consumer.subscribe(session.options.topics)
    left = session.options.max
    while left is None or left > 0:
        records = _flat(await consumer.getmany(_at_most(left), timeout_ms=POLL_MS))
        if records:
            yield records
            await consumer.commit()
            left = None if left is None else left - len(records)


async def _read(consumer: Consumer, session: Session) -> AsyncGenerator[list[ConsumerRecord], None]:
    """Yield records of all partitions, or of those of --partition, up to their ends or for ever."""
    options = session.options
    partitions = await _partitions(consumer, options.topics, options.partition)
    ends = await consumer.end_offsets(partitions)
    consumer.assign(partitions)
    await seek(consumer, partitions, options.start or start_position("latest" if options.follow else "earliest"))
    left = options.max
    while left is None or left > 0:
        if not options.follow and await _are_at(consumer, ends):
            return
        records = _flat(await consumer.getmany(_at_most(left), timeout_ms=POLL_MS))
        if not options.follow:
            records = [each for each in records if each.offset < ends[TopicPartition(each.topic, each.partition)]]
        if records:
            yield records
            left = None if left is None else left - len(records)


async def _are_at(consumer: Consumer, ends: dict[TopicPartition, int]) -> bool:
    """Whether the consumer has read each partition up to its end; finished partitions are paused."""
    unread = False
    for partition, end in ends.items():
        if await consumer.position(partition) < end:
            unread = True
        else:
            consumer.pause(partition)
    return not unread


async def _partitions(consumer: Consumer, topics: Iterable[str], numbers: list[int] | None) -> list[TopicPartition]:
    """Return the partitions to read. Raises UnknownTopic, UsageError for a partition that does not exist."""
    found = []
    for topic in dict.fromkeys(topics):
        existing = [each.partition for each in await consumer.partitions_for(topic)]
        if not existing:
            remedy = "Check the name against list_topics()."
            raise UnknownTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "reading records", topic=topic, remedy=remedy)
        absent = sorted(set(numbers or ()) - set(existing))
        if absent:
            raise UsageError(f"{topic} has no partition {absent[0]}: it has 0 to {len(existing) - 1}")
        found += [TopicPartition(topic, number) for number in sorted(existing) if not numbers or number in numbers]
    return found


def _at_most(left: int | None) -> int:
    return POLL_RECORDS_MAX if left is None else min(left, POLL_RECORDS_MAX)


def _flat(batches: dict[TopicPartition, list[ConsumerRecord]]) -> list[ConsumerRecord]:
    return [record for records in batches.values() for record in records]


def _print(session: Session, records: Iterable[ConsumerRecord]) -> None:
    options, out = session.options, session.out
    formats: dict[str, Any] = {"key": options.key_format, "value": options.value_format}
    for record in records:
        if out.as_json:
            out.event(record_document(record, formats["key"], formats["value"]), "", flush=False)
        else:
            out.raw(b"\t".join(field_bytes(record, field, formats) for field in options.show))
    out.flush()
