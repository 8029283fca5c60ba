"""`rota groups reset`: new committed offsets for a group without members.

Laws
    Without --execute nothing is changed: the offsets that would be set are printed.
"""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Any

from rota.cli.arguments import add_subcommand, time_ms, topic_and_partitions, whole
from rota.cli.group_details import partition_document
from rota.cli.session import Session
from rota.cli.settings import UsageError
from rota.cli.text import Table
from rota.client.types import TopicPartition

if TYPE_CHECKING:
    from rota.cli.arguments import Subcommands

INT64_MAX = (1 << 63) - 1


def add_reset(commands: Subcommands) -> None:
    """Declare the subcommand."""
    add = add_subcommand(
        commands,
        "reset",
        reset_group,
        "set the committed offsets of a group without members; a preview unless --execute",
        epilog="Offsets outside of the log become its start or its end.",
    )
    add.add_argument("group", metavar="GROUP")
    target = add.add_mutually_exclusive_group(required=True)
    target.add_argument("--to-earliest", action="store_true", help="to the start of the log")
    target.add_argument("--to-latest", action="store_true", help="to its end")
    target.add_argument("--to-offset", type=whole(0, INT64_MAX), metavar="OFFSET", help="to this offset")
    target.add_argument(
        "--shift-by", type=whole(-INT64_MAX, INT64_MAX), metavar="N", help="so many records on, or back"
    )
    target.add_argument("--to-datetime", type=time_ms, metavar="TIME", help="the first record at or after it: ISO 8601")
    target.add_argument("--by-duration", metavar="PnDTnHnMnS", help="the same, so long before now: PT1H30M")
    add.add_argument(
        "--topic",
        action="append",
        type=topic_and_partitions,
        metavar="TOPIC[:0,1]",
        help="as often as needed; unset: all that the group has committed",
    )
    add.add_argument("--execute", action="store_true", help="set the offsets; without it nothing is changed")


async def reset_group(session: Session) -> None:
    options = session.options
    target = reset_target(options, int(time.time() * 1000))
    async with session.admin() as admin:
        before = (await admin.list_group_offsets([options.group]))[options.group]
        new = await admin.reset_group_offsets(
            options.group, reset_partitions(options.topic), dry_run=not options.execute, **target
        )
    committed = {partition: None if at is None else at.offset for partition, at in before.items()}
    rows = [reset_document(partition, committed.get(partition), offset) for partition, offset in sorted(new.items())]
    title = "set:" if options.execute else "preview, nothing was changed; add --execute to set these offsets:"
    table = Table(("TOPIC", "PARTITION", "COMMITTED", "NEW", "DIFFERENCE"), [tuple(row.values()) for row in rows],
                  title, empty="the group has committed nothing: name topics with --topic")  # fmt: skip
    session.out.show({"group": options.group, "executed": options.execute, "offsets": rows}, table)


def reset_document(partition: TopicPartition, committed: int | None, offset: int) -> dict[str, Any]:
    """Return one new offset as JSON; a negative difference is how many records are read again."""
    difference = None if committed is None else offset - committed
    return {**partition_document(partition), "committed": committed, "new": offset, "difference": difference}


def reset_target(options: Any, now_ms: int) -> dict[str, Any]:
    """Return the argument of `Admin.reset_group_offsets` that the options name. Raises ConfigError."""
    if options.to_earliest or options.to_latest:
        return {"to": "earliest" if options.to_earliest else "latest"}
    if options.by_duration is not None:
        return {"time_ms": max(0, now_ms - duration_ms(options.by_duration))}
    values = {"offset": options.to_offset, "shift_by": options.shift_by, "time_ms": options.to_datetime}
    return {name: value for name, value in values.items() if value is not None}


def duration_ms(text: str) -> int:
    """Parse a duration of ISO 8601. Raises UsageError."""
    from rota.client.config import reset_after_ms
    from rota.client.errors import ConfigError

    try:
        return reset_after_ms(f"by_duration:{text}") or 0
    except ConfigError:
        raise UsageError(f"--by-duration {text}: expected PnDTnHnMnS, as in PT1H30M or P7D") from None


def reset_partitions(given: list[str | list[TopicPartition]] | None) -> list[str | TopicPartition] | None:
    """Return the topics and partitions of the --topic options; None without any."""
    if given is None:
        return None
    return list(chain.from_iterable([each] if isinstance(each, str) else each for each in given))
