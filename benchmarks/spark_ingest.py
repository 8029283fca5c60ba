"""The job ingest end to end, and streams by partitions and by size of micro-batches, beside Spark's own connector.

    python -m benchmarks.spark_ingest            print the tables, draw docs/spark_growth.svg (needs rota[report])
    python -m benchmarks.spark_ingest --short    a tenth of the records, no picture

A topic of JSON values becomes the table of `ingest` twice: by the job as it is, and by the same job over
`format("kafka")` with the same options. Each is a process of its own with a Spark of two cores, so that its peak
memory (VmHWM of the JVM and of the largest Python worker) is its own; a first run over a small topic warms it. CPU is
that of Spark, its Python workers and the broker. Then streams read topics of 1 to 100 partitions at once, and a topic
of ten in micro-batches of 1 to 64 MB, into Spark's `noop` sink, both connectors in one session. The
broker is a Rota that writes to disk.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from benchmarks.brokers import has_kafka, rota
from benchmarks.spark import KINDS, cpu_s, descendants, session, worker_mb

RECORDS: Final = 400_000
PARTITIONS: Final = (1, 10, 100)
BATCH_MB: Final = (1, 4, 16, 64)
GROWTH_RECORDS: Final = 300_000
INGEST_PARTITIONS: Final = 4
ROUNDS: Final = 1
PAD: Final = "p" * 120
SCHEMA: Final = "id long not null, at timestamp, name string, amount double, pad string"
PICTURE: Final = Path(__file__).parents[1] / "docs" / "spark_growth.svg"
Row = dict[str, Any]


def value(number: int) -> bytes:
    """About 210 bytes of JSON."""
    second = number % 86_400
    at = f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    return f'{{"id": {number}, "at": "{at}", "name": "name-{number}", "amount": {number / 4}, "pad": "{PAD}"}}'.encode()


def filled(address: str, partitions: int, records: int) -> str:
    """A new topic with so many records, spread evenly."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    topic = f"ingest-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address})  # its answers end with it
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
    settings = {"batch.size": 65_536, "linger.ms": 20, "queue.buffering.max.messages": 200_000}
    producer = Producer({"bootstrap.servers": address, **settings})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value(number), partition=number * partitions // records)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0
    return topic


# ---- in a process with a Spark


def ingest(spark: Any, kind: str, address: str, topic: str, folder: str) -> int:
    """The job, over the source `kind`; returns the rows of its table."""
    from rota.spark_connector.pipelines.ingest import RECORDS as TABLE
    from rota.spark_connector.pipelines.ingest import Job, batch_writer, decoded, decoder, deduplicated

    schema = Path(folder, "schema")
    schema.write_text(SCHEMA)
    job = Job(address, topic, f"{folder}/{topic}", schema=str(schema), event_time="at")
    read = spark.readStream.format(kind).options(**job.source).load()
    rows = deduplicated(decoded(read, decoder(job), job), job)
    writer = rows.writeStream.option("checkpointLocation", job.checkpoint_path).trigger(availableNow=True)
    writer.foreachBatch(batch_writer(job)).start().awaitTermination()
    return int(spark.read.parquet(f"{job.output}/{TABLE}").count())


def measure_ingest(kind: str, address: str, broker: int, warm: str, topic: str) -> Row:
    with session() as spark, tempfile.TemporaryDirectory() as folder:
        ingest(spark, kind, address, warm, folder)
        spent, began = cpu_s(broker), time.perf_counter()
        rows = ingest(spark, kind, address, topic, folder)
        seconds, cpu = time.perf_counter() - began, cpu_s(broker) - spent
        return {"kind": kind, "rows": rows, "seconds": seconds, "cpu": cpu, "worker": worker_mb(), "jvm": jvm_mb()}


def jvm_mb() -> float:
    """The most that Spark's JVM has had in memory."""
    most = 0
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0].endswith("java"):
                status = Path(f"/proc/{pid}/status").read_text().splitlines()
                most = max([most, *(int(line.split()[1]) for line in status if line.startswith("VmHWM"))])
    return most / 1024


def stream_s(spark: Any, kind: str, address: str, topic: str, **options: str) -> float:
    """Seconds of a stream of all records there are."""
    given = {"kafka.bootstrap.servers": address, "subscribe": topic, "startingOffsets": "earliest", **options}
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        writer = spark.readStream.format(kind).options(**given).load().writeStream.format("noop")
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - began
        read = sum(each.numInputRows for each in query.recentProgress)
        assert read >= 1, "the stream has read nothing"
    return seconds


def measure_growth(address: str, records: int, rounds: int, topics: dict[str, str]) -> list[Row]:
    """Rows/s of both connectors; `topics` by their number of partitions."""
    found: list[Row] = []

    def add(by: str, size: int, topic: str, **options: str) -> None:
        taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for _ in range(rounds):
            for kind in KINDS:
                taken[kind].append(stream_s(spark, kind, address, topic, **options))
        found.extend({"by": by, "size": size, "kind": kind, "rate": records / min(taken[kind])} for kind in KINDS)

    with session() as spark:
        for kind in KINDS:  # warm
            stream_s(spark, kind, address, topics["10"])
        for partitions in PARTITIONS:
            add("partitions", partitions, topics[str(partitions)])
        for mb in BATCH_MB:
            limit = max(1, (mb << 20) // len(value(GROWTH_RECORDS)))
            add("MB of a micro-batch", mb, topics["10"], maxOffsetsPerTrigger=str(limit))
    return found


def child(task: str, *arguments: Any) -> Any:
    """Run a function of this file in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.spark_ingest", "--task", task, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


TASKS: Final[dict[str, Callable[..., Any]]] = {"ingest": measure_ingest, "growth": measure_growth}


# ---- the tables


def print_ingest(rows: list[Row]) -> None:
    """As in benchmarks/README.md."""
    print("| job | rows/s | CPU us/row | largest Python worker MB | JVM MB |\n|---|---|---|---|---|")
    names = {"rota": "`ingest`", "kafka": 'the same over `format("kafka")`'}
    for row in rows:
        cpu = row["cpu"] / row["rows"] * 1e6
        rate = row["rows"] / row["seconds"]
        print(f"| {names[row['kind']]} | {rate:,.0f} | {cpu:.1f} | {row['worker']:.0f} | {row['jvm']:.0f} |")


def print_growth(rows: list[Row]) -> None:
    """As in benchmarks/README.md."""
    rates = {(row["by"], row["size"], row["kind"]): row["rate"] for row in rows}
    print('\n| | | `format("rota")` rows/s | `format("kafka")` rows/s | ratio |\n|---|---|---|---|---|')
    for by, size in dict.fromkeys((row["by"], row["size"]) for row in rows):
        own, official = (rates[by, size, kind] for kind in KINDS)
        print(f"| {by} | {size} | {own:,.0f} | {official:,.0f} | {own / official:.2f} |")


def picture(rows: list[Row]) -> str:
    """The table as SVG, drawn by Vega-Lite."""
    import vl_convert

    names = {"rota": 'format("rota")', "kafka": 'format("kafka")'}
    data = [{**row, "connector": names[row["kind"]]} for row in rows]
    charts = [
        {
            "title": f"Rows/s by {by}",
            "transform": [{"filter": {"field": "by", "equal": by}}],
            "mark": {"type": "line", "point": True},
            "encoding": {
                "x": {"field": "size", "type": "quantitative", "scale": {"type": "log"}, "title": by},
                "y": {"field": "rate", "type": "quantitative", "title": "rows/s", "axis": {"format": "~s"}},
                "color": {"field": "connector", "type": "nominal", "title": None},
            },
        }
        for by in dict.fromkeys(row["by"] for row in rows)
    ]
    schema = "https://vega.github.io/schema/vega-lite/v6.json"
    spec = {"$schema": schema, "background": "white", "data": {"values": data}, "hconcat": charts}
    return str(vl_convert.vegalite_to_svg(spec))


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_ingest", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a tenth of the records, no picture")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        print(json.dumps(TASKS[given.task[0]](*json.loads(given.task[1]))))
        return
    if not has_kafka():
        print("Java or Maven is missing: no Spark, no figures of it")
        return
    factor, rounds = (10, 1) if given.short else (1, ROUNDS)
    with rota() as broker:
        topic, warm = filled(broker.address, INGEST_PARTITIONS, RECORDS // factor), filled(broker.address, 1, 1_000)
        runs = [child("ingest", kind, broker.address, broker.pid, warm, topic) for kind in KINDS]
        assert {row["rows"] for row in runs} == {RECORDS // factor}
        print_ingest(runs)
        records = GROWTH_RECORDS // factor
        topics = {str(partitions): filled(broker.address, partitions, records) for partitions in PARTITIONS}
        rows = child("growth", broker.address, records, rounds, topics)
    print_growth(rows)
    if not given.short:
        PICTURE.write_text(picture(rows))


if __name__ == "__main__":
    main()
