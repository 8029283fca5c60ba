"""`rota produce`: send records from standard input, a file or the command line."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from argparse import ArgumentParser
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import INT32_MAX, add_client_options, name_and_value, time_ms, whole
from rota.cli.formats import FORMATS, FormatError, encode, read_document, read_line
from rota.cli.progress import Progress
from rota.cli.session import EXIT_FAILED, Session, client_command
from rota.cli.settings import UsageError, config_of
from rota.cli.text import Table
from rota.client.errors import DeliveryFailed, KafkaError, RecordTooLarge

if TYPE_CHECKING:
    from rota.client import Delivery, Producer

CHUNK_BYTES: Final = 1 << 16
CHUNKS_AHEAD_MAX: Final = 4
LINE_BYTES_MAX: Final = 64 << 20
UNACKNOWLEDGED_MAX: Final = 10_000
FAILURES_PRINTED_MAX: Final = 5


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Send records: a line of standard input is a value, or a key and a value with --key-separator, or with "
        "--input json an object as `rota consume --json` prints it. --value sends one record and reads no input."
    )
    add = parser.add_argument
    add("topic", metavar="TOPIC")
    add("--value", help="send one record with this value")
    add("--key", help="the key of all records")
    add("--header", type=name_and_value, action="append", default=[], metavar="NAME=VALUE", help="of all records")
    add("--partition", type=whole(0, INT32_MAX), metavar="N", help="unset: by the key, or in turns")
    add("--timestamp", type=time_ms, metavar="TIME", help="ISO 8601 or milliseconds; unset: now")
    add("--file", metavar="FILE", help="read this file instead of standard input")
    add("--input", choices=("lines", "json"), default="lines", help="what a line is; default %(default)s")
    add("--key-separator", metavar="TEXT", help="a line is KEY TEXT VALUE; \\t is a tab")
    add("--key-format", choices=FORMATS, default="string", help="of the input")
    add("--value-format", choices=FORMATS, default="string", help="of the input")
    add("--acks", choices=("0", "1", "all"), default="all")
    add("--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none")
    add_client_options(parser)
    parser.set_defaults(run=client_command(produce), bytes_options=("value", "key", "header", "key_separator"))


async def produce(session: Session) -> int | None:
    from rota.client import Producer, ProducerConfig

    options = session.options
    settings = session.settings() | {"acks": options.acks, "compression.type": options.compression}
    settings.setdefault("max.block.ms", settings["default.api.timeout.ms"])
    config = config_of(ProducerConfig, settings)
    lines = _lines_of(options)
    await session.require_listener(config)
    if options.partition is not None:
        await _require_partition(session, options.topic, options.partition)
    report, end = _Report(), None
    async with Producer(config) as producer:
        with Progress("sent", "records") as progress:
            try:
                await _send_all(producer, options, lines, report, progress)
            except UsageError as wrong_line:
                raise UsageError(f"{wrong_line}. {report.of_lines_before()}") from wrong_line
            except KafkaError as failure:  # of `send`: the records before it are reported
                end = failure
    if end is not None and report.is_empty:
        raise end
    session.out.show(report.document(options.topic), report.table(options.topic))
    for message in report.failures[:FAILURES_PRINTED_MAX]:
        session.error(message, EXIT_FAILED)
    if end is not None:
        raise end
    return EXIT_FAILED if report.failures else None


async def _require_partition(session: Session, topic: str, partition: int) -> None:
    """Raises KafkaError when the topic exists and lacks the partition: a producer waits for one that may be added."""
    async with session.admin() as admin:
        try:
            described = (await admin.describe_topics([topic]))[topic]
        except KafkaError:
            return  # the producer creates the topic, or says what is wrong
    if partition >= len(described.partitions):
        raise KafkaError(f"topic {topic} has no partition {partition}: it has 0 to {len(described.partitions) - 1}")


class _Report:
    """What was written in each partition, and what failed."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[int]] = {}  # first offset, last offset, records
        self.failures: list[str] = []

    @property
    def is_empty(self) -> bool:
        return not self.partitions and not self.failures

    async def add(self, delivery: Delivery) -> None:
        try:
            written = await delivery
        except DeliveryFailed as failure:
            self.failures.append(str(failure))
            return
        first, last, count = self.partitions.get(written.partition, (written.offset, -1, 0))
        self.partitions[written.partition] = [min(first, written.offset), max(last, written.offset), count + 1]

    def of_lines_before(self) -> str:
        """Say of a line that is no record what became of those before it."""
        if not self.failures:
            return "The lines before it were sent"
        verb = "was" if len(self.failures) == 1 else "were"
        return f"Of the lines before it {len(self.failures)} {verb} not sent, the first: {self.failures[0]}"

    def rows(self) -> Iterator[tuple[int, int, int | None, int | None]]:
        for number, (first, last, count) in sorted(self.partitions.items()):
            yield number, count, None if first < 0 else first, None if last < 0 else last

    def document(self, topic: str) -> dict[str, Any]:
        names = ("partition", "records", "first_offset", "last_offset")
        rows = [dict(zip(names, row, strict=True)) for row in self.rows()]
        records = sum(count for _, _, count in self.partitions.values())
        return {"topic": topic, "records": records, "failed": len(self.failures), "partitions": rows}

    def table(self, topic: str) -> Table:
        rows = [(topic, *row) for row in self.rows()]
        return Table(("TOPIC", "PARTITION", "RECORDS", "FIRST", "LAST"), rows, empty="nothing was sent")


async def _send_all(
    producer: Producer, options: Any, lines: AsyncIterator[bytes], report: _Report, progress: Progress
) -> None:
    """Send each line as a record; wait for old acknowledgements before too many are open. Raises UsageError."""
    read = _reader(options)
    unacknowledged: deque[Delivery] = deque()
    number = 0
    try:
        async for line in lines:
            number += 1
            try:
                unacknowledged.append(await producer.send(options.topic, **read(line)))
            except (FormatError, RecordTooLarge) as failure:
                raise UsageError(f"line {number}: {failure}") from failure
            if len(unacknowledged) > UNACKNOWLEDGED_MAX:
                await report.add(unacknowledged.popleft())
                progress.advance(1)
    finally:
        while unacknowledged:
            await report.add(unacknowledged.popleft())
            progress.advance(1)


def _reader(options: Any) -> Callable[[bytes], dict[str, Any]]:
    """Return the function that makes a line the arguments of `Producer.send`."""
    separator = options.key_separator and options.key_separator.replace("\\t", "\t").encode("utf-8", "surrogateescape")
    if options.input == "json":
        parse = partial(read_document, key_format=options.key_format, value_format=options.value_format)
    else:
        parse = partial(read_line, separator=separator or None, key_format=options.key_format,
                        value_format=options.value_format)  # fmt: skip
    given: dict[str, Any] = {"partition": options.partition}
    if options.key is not None:
        given["key"] = encode(options.key, options.key_format)
    if options.timestamp is not None:
        given["timestamp_ms"] = options.timestamp
    headers = tuple((name, value.encode("utf-8", "surrogateescape")) for name, value in options.header)

    def read(line: bytes) -> dict[str, Any]:
        record = parse(line) | given
        return record | {"headers": (*record.get("headers", ()), *headers)}

    return read


def _lines_of(options: Any) -> AsyncIterator[bytes]:
    """Return the lines to send. Raises UsageError for a file that cannot be read, or beside --value."""
    if options.value is not None:
        if options.file is not None:
            raise UsageError("give --value or --file: --value sends one record and reads no input")
        return _single(options.value.encode("utf-8", "surrogateescape"))
    try:
        return read_lines(os.open(options.file, os.O_RDONLY) if options.file else sys.stdin.fileno())
    except OSError as failure:
        raise UsageError(f"cannot read {options.file}: {failure.strerror}") from failure


async def _single(line: bytes) -> AsyncIterator[bytes]:
    yield line


async def read_lines(descriptor: int) -> AsyncIterator[bytes]:
    """Yield the lines of a file or pipe without their ends, as they come.

    A daemon thread reads, because a pipe, a terminal and a file have no common way to wait in a loop; Ctrl-C does not
    wait for it.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | OSError] = asyncio.Queue(CHUNKS_AHEAD_MAX)
    threading.Thread(target=_read_chunks, args=(descriptor, loop, chunks), daemon=True, name="input").start()
    rest = bytearray()
    while chunk := await chunks.get():
        if isinstance(chunk, OSError):
            raise UsageError(f"cannot read the input: {chunk.strerror}")
        first, *lines = chunk.split(b"\n")
        rest += first
        for line in lines:
            yield bytes(rest).removesuffix(b"\r")
            rest[:] = line
        if len(rest) > LINE_BYTES_MAX:
            raise UsageError(f"a line has more than {LINE_BYTES_MAX} bytes. The lines before it were sent")
    if rest:
        yield bytes(rest)


def _read_chunks(descriptor: int, loop: asyncio.AbstractEventLoop, chunks: asyncio.Queue[bytes | OSError]) -> None:
    chunk: bytes | OSError = b"-"
    while chunk and not isinstance(chunk, OSError):
        try:
            chunk = os.read(descriptor, CHUNK_BYTES)
        except OSError as failure:
            chunk = failure
        put = chunks.put(chunk)
        try:
            asyncio.run_coroutine_threadsafe(put, loop).result()
        except (RuntimeError, CancelledError):  # the command has ended
            put.close()
            return
