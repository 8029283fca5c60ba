"""What a small micro-batch takes: this project's source, Spark's own, and Python sources that do nothing.

    python -m benchmarks.spark_latency [--records N …] [--partitions N] [--batches N] [--rounds N]

A stream reads a topic in micro-batches of N records of all partitions (`maxOffsetsPerTrigger`, `availableNow`, `noop`
sink), each source in turn in one session of two cores, round after round. The figures are medians of the queries'
`durationMs`, without the first WARM_UP micro-batches of a query, in the best round. A Python source that does nothing
shows what Spark itself needs: it asks for offsets and partitions over a socket, and runs `read` in Python workers.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from benchmarks.brokers import has_kafka, rota
from benchmarks.spark import session
from benchmarks.spark_ingest import filled

WARM_UP: Final = 5
PARTS: Final = (
    "triggerExecution",
    "addBatch",
    "latestOffset",
    "getBatch",
    "queryPlanning",
    "walCommit",
    "commitOffsets",
)
Durations = dict[str, float]


class Nothing(DataSource):
    """`format("nothing")`: `batches` micro-batches of so many tasks, each of one ready row."""

    @classmethod
    def name(cls) -> str:
        return "nothing"

    def schema(self) -> str:
        return "value binary"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # Spark's name
        return NothingReader(int(self.options["tasks"]), int(self.options["batches"]))


class NothingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, tasks: int, batches: int) -> None:
        self._tasks, self._batches = tasks, batches

    def initialOffset(self) -> dict[str, int]:  # Spark's name
        return {"at": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # Spark's name
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # Spark's name
        pass

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # Spark's name
        return {"at": min(start["at"] + 1, self._batches)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield pa.RecordBatch.from_arrays([pa.array([b"v"], pa.binary())], ["value"])


def durations(spark: Any, kind: str, options: dict[str, str]) -> Durations:
    """Medians of the `durationMs` of a query's micro-batches."""
    with tempfile.TemporaryDirectory() as folder:
        writer = spark.readStream.format(kind).options(**options).load().writeStream.format("noop")
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        taken = [each.durationMs for each in query.recentProgress if each.numInputRows][WARM_UP:]
    return {part: statistics.median(each.get(part, 0) for each in taken) for part in PARTS}


def queries(broker: str, records: int, given: argparse.Namespace) -> dict[str, tuple[str, dict[str, str]]]:
    """Format and options of each source, by its name in the table."""
    read = {
        "kafka.bootstrap.servers": broker,
        "subscribe": filled(broker, given.partitions, records * given.batches),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(records),
    }
    nothing = {tasks: {"tasks": str(tasks), "batches": str(given.batches)} for tasks in (1, given.partitions)}
    return {
        '`format("rota")`': ("rota", read),
        "the same with `minRecordsPerPartition` 0": ("rota", {**read, "minRecordsPerPartition": "0"}),
        '`format("kafka")`': ("kafka", read),
        **{f"nothing, in Python, tasks: {tasks}": ("nothing", options) for tasks, options in nothing.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_latency", description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[400, 6_000])
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if not has_kafka():
        print("Java or Maven is missing: no Spark, no figures of it")
        return
    with rota() as broker, session() as spark:
        spark.dataSource.register(Nothing)
        print(f"| records | ms | {' | '.join(PARTS)} | rounds |\n|{'---|' * (len(PARTS) + 3)}")
        for records in given.records:
            measured = queries(broker.address, records, given)
            found: dict[str, list[Durations]] = {name: [] for name in measured}
            for _ in range(given.rounds):
                for name, query in measured.items():
                    found[name].append(durations(spark, *query))
            print_rows(records, found)


def print_rows(records: int, found: dict[str, list[Durations]]) -> None:
    """The best round of each source, and the whole of all rounds."""
    for name, rounds in found.items():
        best = min(rounds, key=lambda each: each[PARTS[0]])
        parts = " | ".join(f"{best[part]:.0f}" for part in PARTS)
        whole = ", ".join(f"{each[PARTS[0]]:.0f}" for each in rounds)
        print(f"| {records:,} | {name} | {parts} | {whole} |", flush=True)


if __name__ == "__main__":
    main()
