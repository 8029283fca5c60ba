"""What a record costs: `python -m benchmarks.records` prints microseconds, beside aiokafka's Cython where it is there.

CPU time of this thread, the best of many runs, for batches of 1,000 records of about 100 bytes.
"""

from __future__ import annotations

import os
import time
import timeit
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from rich.console import Console
from rich.table import Table

from rota.protocol.records import COMPILED, batch, fast
from rota.protocol.records.batch import Codec, check_batch, read_header
from rota.protocol.records.record import BatchBuilder, Record, read_records, write_batch, write_pairs

COUNT = 1000
RECORDS = [Record(i, 1_700_000_000_000 + i // 10, b"key%05d" % i, os.urandom(42).hex().encode()) for i in range(COUNT)]
CHECKSUM_SIZES_BYTES = (200, 16 * 1024, 1024 * 1024)


def us(work: Callable[[], object], per: int = 1) -> str:
    """Microseconds for one of the `per` things that `work` does."""
    once = timeit.timeit(work, number=3, timer=time.thread_time) / 3
    number = max(1, int(0.01 / max(once, 1e-7)))
    best_s = min(timeit.repeat(work, number=number, repeat=20, timer=time.thread_time)) / number
    return f"{best_s / per * 1e6:.3f}"


def built() -> bytes:
    builder = BatchBuilder(1 << 20)
    for one in RECORDS:
        builder.append(one.timestamp, one.key, one.value)
    return builder.build()


def ours(table: Table) -> None:
    raw = write_batch(RECORDS)
    header = read_header(raw)
    few = write_pairs([(b"k" * 40, b"v" * 30)], 1)
    few_header = read_header(few)
    decode = (raw, batch.BATCH_HEADER_BYTES, len(raw), COUNT, 0, header.base_timestamp, None)
    table.add_row("decode a record", us(lambda: fast.decode_records(*decode), COUNT))
    table.add_row("encode a record", us(lambda: fast.encode_records(RECORDS, header.base_timestamp), COUNT))
    table.add_row("build a batch record by record, each", us(built, COUNT))
    table.add_row("write a batch of one pair", us(lambda: write_pairs([(b"k" * 40, b"v" * 30)], 1)))
    table.add_row("read a header", us(lambda: read_header(few)))
    table.add_row("check a batch of 139 bytes", us(lambda: check_batch(few, 0, few_header)))
    for codec in Codec:
        packed = write_batch(RECORDS, codec=codec)
        table.add_row(f"{codec.name}: write a record", us(partial(write_batch, RECORDS, codec=codec), COUNT))
        table.add_row(f"{codec.name}: read a record", us(partial(read_records, packed), COUNT))


def others(table: Table) -> None:
    if find_spec("aiokafka") is not None:
        from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

        def build() -> None:
            builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
            for number, one in enumerate(RECORDS):
                builder.append(number, one.timestamp, one.key, one.value, [])
            builder.build()

        raw = bytearray(write_batch(RECORDS))
        table.add_row("aiokafka: decode a record", us(lambda: list(DefaultRecordBatch(raw)), COUNT))
        table.add_row("aiokafka: build a batch record by record, each", us(build, COUNT))
    for name in ("crc32c", "google_crc32c"):
        if find_spec(name) is not None:
            module = __import__(name)
            checksum = module.crc32c if name == "crc32c" else module.value
            for size in CHECKSUM_SIZES_BYTES:
                body = os.urandom(size)
                table.add_row(f"{name}: {size} bytes", us(partial(checksum, body)))


def main() -> None:
    table = Table("work", "us", title="compiled" if COMPILED else "interpreted")
    ours(table)
    others(table)
    Console().print(table)


if __name__ == "__main__":
    main()
