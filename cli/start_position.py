"""Where `rota consume` begins in each partition: the option --from."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, NamedTuple

from rota.cli.arguments import INT64_MAX, time_ms
from rota.cli.settings import UsageError

if TYPE_CHECKING:
    from rota.client import Consumer, TopicPartition


class StartPosition(NamedTuple):
    """One kind of position, with its number: earliest, latest, offset, before_end (records) or time (ms)."""

    kind: str
    number: int = 0


def start_position(text: str) -> StartPosition:
    """Parse earliest, latest, OFFSET, -N or @TIME. Raises ArgumentTypeError."""
    if text in ("earliest", "latest"):
        return StartPosition(text)
    if text.startswith("@"):
        return StartPosition("time", time_ms(text[1:]))
    try:
        number = int(text)
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} is not earliest, latest, an offset, -N for the last N records, or @TIME"
        ) from None
    if abs(number) > INT64_MAX:
        raise ArgumentTypeError(f"{text} is no offset: the largest is {INT64_MAX}")
    return StartPosition("offset", number) if number >= 0 else StartPosition("before_end", -number)


async def seek(consumer: Consumer, partitions: list[TopicPartition], at: StartPosition) -> None:
    """Seek all partitions to the position; an offset outside of a log is its nearest end. Raises UsageError for an
    offset beyond the end of every partition."""
    if at.kind == "time":
        await consumer.seek_to_time(at.number, partitions)
        return
    if at.kind == "earliest":
        consumer.seek_to_beginning(partitions)
        return
    ends = await consumer.end_offsets(partitions)
    if at.kind == "offset" and all(at.number > end for end in ends.values()):
        last = max(partitions, key=ends.__getitem__)
        which = "the end" if len(partitions) == 1 else "the last end of all partitions"
        raise UsageError(f"--from {at.number} is beyond {which}, {ends[last]} of {last}")
    starts = await consumer.beginning_offsets(partitions)
    for partition in partitions:
        start, end = starts[partition], ends[partition]
        wanted = {"latest": end, "offset": at.number, "before_end": end - at.number}[at.kind]
        consumer.seek(partition, min(max(wanted, start), end))
