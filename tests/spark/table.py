"""A streaming query that writes a Parquet table, with its checkpoint beside; and what is in both."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.interop.kit import until
from tests.spark.conftest import Options

ENDS_S = 180.0  # a deadline, not a delay: a query takes a second or two
Row = tuple[str, int, int, bytes]  # topic, partition, offset, value
QUICK = {"fetchOffset.retryIntervalMs": "10"}


def stream(spark: SparkSession, options: Options, **more: Any) -> DataFrame:
    """From the beginning unless `more` says otherwise; "group_id" stands for "group.id"."""
    given = {name.replace("group_id", "group.id"): str(value) for name, value in more.items()}
    return (
        spark.readStream.format("rota").options(**{**QUICK, "startingOffsets": "earliest", **options, **given}).load()
    )


@dataclass(frozen=True, slots=True)
class Table:
    """`start` as often as there are restarts."""

    spark: SparkSession
    folder: Path

    def start(self, frame: DataFrame, **trigger: Any) -> StreamingQuery:
        writer = frame.select("topic", "partition", "offset", "value").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(self.checkpoint)).option("path", str(self.folder / "table"))
        return writer.trigger(**(trigger or {"availableNow": True})).start()

    def run(self, frame: DataFrame) -> list[Any]:
        """What there is now, to the end; the progress of each micro-batch."""
        return ended(self.start(frame))

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def rows(self) -> list[Row]:
        """All of them in order, those that are there twice twice."""
        if not (self.folder / "table" / "_spark_metadata").exists():
            return []
        found = self.spark.read.parquet(str(self.folder / "table")).collect()
        return sorted((row[0], row[1], row[2], bytes(row[3])) for row in found)

    def offsets(self) -> list[dict[str, dict[str, int]]]:
        """Where each micro-batch ended, as the checkpoint has it."""
        files = sorted((item for item in (self.checkpoint / "offsets").glob("*") if item.name.isdigit()), key=_number)
        return [json.loads(item.read_text().splitlines()[-1]) for item in files]


def _number(file: Path) -> int:
    return int(file.name)


def ended(query: StreamingQuery) -> list[Any]:
    """It ends by itself; the progress of its micro-batches."""
    try:
        assert query.awaitTermination(ENDS_S), "it goes on"
    finally:
        query.stop()
    return list(query.recentProgress)


def failed(query: StreamingQuery) -> str:
    """It fails by itself; with these words."""
    try:
        assert not query.awaitTermination(ENDS_S), "it ended well"
    except StreamingQueryException as why:
        return str(why)
    finally:
        query.stop()
    raise AssertionError("it goes on")


def reached(query: StreamingQuery, offsets: dict[str, dict[str, int]]) -> None:
    """A micro-batch of this run has ended there."""

    def look() -> bool:
        if query.exception() is not None:
            raise AssertionError(f"the query failed: {query.exception()}")
        last = query.lastProgress
        return (
            last is not None
            and last.sources[0].endOffset is not None
            and json.loads(last.sources[0].endOffset) == offsets
        )

    until(look, f"a micro-batch that ends at {offsets}; it is at {query.lastProgress}", seconds=ENDS_S)
