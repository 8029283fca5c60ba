"""Topics into a table, each record once; values that cannot be decoded into a table beside it, with the reason.

    python -m rota.spark_connector.pipelines.ingest --bootstrap-servers 127.0.0.1:9092 --topics orders \\
        --schema orders.ddl --output lake/orders

docs/INGEST.md describes the tables. `spark-submit` can run this file.

Laws
    Each record is in `records` or in `dead_letters` once, except a duplicate of --deduplicate-by and a record that is
    older than the watermark; both are counted on the terminal.
    A micro-batch that runs again replaces what it had written (Parquet), or writes what is not there (the others).
    The group of --group never has a committed offset beyond the records of the tables.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType, TimestampType

from rota.client.log import logger
from rota.protocol.dataclass import dataclass
from rota.spark_connector.errors import OptionError
from rota.spark_connector.options import stream_options
from rota.spark_connector.pipelines import table_formats
from rota.spark_connector.pipelines.arguments import (
    checkpoint_path,
    common_parser,
    interval,
    parse_common,
    secret_of,
    source_options,
)
from rota.spark_connector.pipelines.checkpoint_tables import Place, check_state
from rota.spark_connector.pipelines.job_errors import checked, exit_code
from rota.spark_connector.pipelines.job_lock import locked
from rota.spark_connector.pipelines.micro_batches import numbered
from rota.spark_connector.pipelines.new_schemas import check_schemas, schema_ids
from rota.spark_connector.pipelines.progress_lines import METRICS, progress_line
from rota.spark_connector.pipelines.protobuf_registry import protobuf_subject
from rota.spark_connector.pipelines.protobuf_values import protobuf_format
from rota.spark_connector.pipelines.schema_registry import Registry
from rota.spark_connector.pipelines.table_files import BATCH
from rota.spark_connector.pipelines.table_formats import Table, add_table_arguments
from rota.spark_connector.pipelines.value_formats import (
    REASON,
    RECORD,
    Decode,
    avro_format,
    json_format,
    json_schema,
    same_names,
)
from rota.spark_connector.source import register

FORMATS: Final = ("json", "avro", "protobuf")
RECORDS: Final = "records"
DEAD: Final = "dead_letters"
DAY: Final = "event_day"
EVENT_TIME: Final = "_event_time"
SOURCE: Final = ("_topic", "_partition", "_offset", "_timestamp", "_key")
OTHER_NAMES: Final = "without fields whose names differ in no more than case: a table has one column for both"
PROGRESS_INTERVAL_S: Final = 1
_FIRST: Final = "0001-01-01T00:00:00Z"  # Python has no earlier day
_log = logger("rota.spark")


@dataclass(frozen=True, slots=True)
class Job:
    """The job's parameters. `schema`: a file. `message`: the type of Protobuf values; `framed`: behind the frame of a
    schema registry. `schema_ids`: schemas of the registry beside those of the subject.
    `table_format`: parquet, delta or iceberg, the last one with a `namespace`: a catalog and a namespace in it.
    `interval` "": what there is now, once. `compact_after`: the number of folders of a day that are joined into one.
    `keep_days` 0: for ever."""

    bootstrap_servers: str
    topics: str
    output: str
    value_format: str = "json"
    schema: str = ""
    message: str = ""
    framed: bool = False
    schema_registry: str = ""
    registry_credentials: str = field(default="", repr=False)
    schema_ids: tuple[int, ...] = ()
    group: str = ""
    event_time: str = ""
    event_time_ahead_max: str = "1 day"
    watermark: str = "1 hour"
    deduplicate_by: tuple[str, ...] = ()
    interval: str = ""
    checkpoint: str = ""
    starting: str = "earliest"
    compact_after: int = 100
    keep_days: int = 0
    table_format: str = "parquet"
    namespace: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def checkpoint_path(self) -> str:
        """The folder of the checkpoint."""
        return checkpoint_path(self.output, self.checkpoint)

    @property
    def source(self) -> dict[str, str]:
        """The options of the source."""
        own = source_options(self.bootstrap_servers, self.topics, self.starting)
        return {**own, **({"group.id": self.group} if self.group else {}), **self.options}

    @property
    def when(self) -> dict[str, Any]:
        """For writeStream.trigger."""
        return {"processingTime": self.interval} if self.interval else {"availableNow": True}

    @property
    def place(self) -> Place:
        """Where the tables are."""
        return Place(self.table_format, self.output, self.namespace, self.checkpoint_path)

    def tables(self) -> dict[str, Table]:
        """RECORDS and DEAD. Raises OptionError."""
        return {name: table_formats.open_table(self.place, name, DAY) for name in (RECORDS, DEAD)}


def start(spark: SparkSession, job: Job) -> StreamingQuery:
    """Start the query. Raises OptionError."""
    register(spark)
    stream_options(job.source)
    table_formats.prepare_tables(spark, job.place, job.tables())
    check_state(job.checkpoint_path, job.deduplicate_by)
    read = spark.readStream.format("rota").options(**job.source).load()
    rows = deduplicated(decoded(read, decoder(job), job), job)
    writer = rows.writeStream.queryName(f"ingest {job.topics}").option("checkpointLocation", job.checkpoint_path)
    with checked("--interval", job.interval, "an interval, as in 10 seconds"):
        writer = writer.trigger(**job.when)
    return writer.foreachBatch(batch_writer(job)).start()


def decoder(job: Job) -> Decode:
    """The decoder of the job's value format, with the schema of the file or the registry. Raises OptionError."""
    if job.value_format not in FORMATS:
        raise OptionError("--value-format", job.value_format, f"one of {', '.join(FORMATS)}")
    if (job.value_format == "protobuf") != bool(job.message):
        raise OptionError("--message", job.message or None, "given for protobuf, and for no other format")
    if job.framed and job.value_format != "protobuf":
        raise OptionError("--framed", "true", "used with protobuf; Avro with --schema-registry is always framed")
    if bool(job.schema) == bool(job.schema_registry):
        raise OptionError("--schema", job.schema or None, "given, or --schema-registry in place of it")
    if job.schema_registry:
        registry = Registry(job.schema_registry, job.registry_credentials)
        if job.value_format == "json" or "," in job.topics:
            expected = "used with Avro values of one topic, or with Protobuf values of one"
            raise OptionError("--schema-registry", job.schema_registry, expected)
        return _of_registry(registry, f"{job.topics}-value", job)
    try:
        if job.value_format == "protobuf":
            return protobuf_format(Path(job.schema).read_bytes(), job.message, is_framed=job.framed)
        text = Path(job.schema).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError("--schema", job.schema, f"a file that can be read ({error})") from None
    return avro_format(text) if job.value_format == "avro" else json_format(json_schema(text))


def _of_registry(registry: Registry, subject: str, job: Job) -> Decode:
    if job.value_format == "avro":
        avro = registry.avro_subject(subject, job.schema_ids)
        return avro_format(avro.latest, avro.by_id)
    protobuf = protobuf_subject(registry, subject, job.message, job.schema_ids)
    return protobuf_format(protobuf.descriptors, job.message, is_framed=True, writers=protobuf.writers)


def decoded(records: DataFrame, decode: Decode, job: Job) -> DataFrame:
    """RECORD, REASON, EVENT_TIME, the value and the columns of SOURCE. Raises OptionError for columns of the record
    that do not fit the job."""
    rows = _with_record(decode, records)
    kinds = rows.schema[RECORD].dataType
    assert isinstance(kinds, StructType)
    if records.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        check_names(kinds)
    check_columns(kinds, job)
    latest = _latest(job)
    time = F.col(RECORD).getField(job.event_time) if job.event_time else F.col("timestamp")
    rows = rows.withColumn(REASON, F.coalesce(REASON, _wrong_time(time, latest, job)))
    source = [F.col(name.removeprefix("_")).alias(name) for name in SOURCE]
    # without an event time a dead letter neither moves the watermark nor is too late for it
    time = F.when(F.col(REASON).isNull(), time)
    received = F.when(_is_sane(F.col("timestamp"), latest), F.col("timestamp")).otherwise(F.current_timestamp())
    day = _day(F.coalesce(time, received)).alias(DAY)
    metrics = (F.count(F.lit(1)).alias("records"), F.count(REASON).alias("dead"))
    read = rows.select(RECORD, REASON, time.alias(EVENT_TIME), day, "value", *source)
    return read.observe(f"{METRICS} read", *metrics)


def _latest(job: Job) -> Column:
    """The latest event time of a micro-batch. Spark keeps the time of a micro-batch, so it has the same one again."""
    ahead = interval("--event-time-ahead-max", job.event_time_ahead_max, years_max=1000)
    return F.current_timestamp() + F.expr(f"interval '{ahead}'")


def _wrong_time(time: Column, latest: Column, job: Job) -> Column:
    """Why a record has no event time that a table can have; null: it has one. A time of the distant future would move
    the watermark past all other records."""
    name = f"{job.event_time or 'timestamp'}, the event time,"
    return (
        F.when(time.isNull(), F.lit(f"{name} is null"))
        .when(time < F.lit(_FIRST).cast("timestamp"), F.lit(f"{name} is before the year 1"))
        .when(time > latest, F.lit(f"{name} is more than {job.event_time_ahead_max} in the future"))
    )


def _is_sane(time: Column, latest: Column) -> Column:
    return time.isNotNull() & (time >= F.lit(_FIRST).cast("timestamp")) & (time <= latest)


def _with_record(decode: Decode, records: DataFrame) -> DataFrame:
    try:
        return decode(records)
    except AnalysisException as error:
        if "AMBIGUOUS_REFERENCE_TO_FIELDS" in str(error):
            raise OptionError("--schema", None, OTHER_NAMES) from None
        if "AVRO_NOT_LOADED" not in str(error):
            raise
        package = f"org.apache.spark:spark-avro_2.13:{records.sparkSession.version}"
        expected = f"json, or used with Spark's package for Avro: spark-submit --packages {package}"
        raise OptionError("--value-format", "avro", expected) from None


def check_names(record: StructType) -> None:
    """Raises OptionError."""
    if same := same_names(record):
        raise OptionError("--schema", ", ".join(same), OTHER_NAMES)


def check_columns(record: StructType, job: Job) -> None:
    """Raises OptionError."""
    reserved = {name.lower() for name in (*SOURCE, EVENT_TIME, DAY, BATCH)}
    for name in record.names:
        if name.lower() in reserved:
            raise OptionError("--schema", name, f"without the fields {', '.join(sorted(reserved))}: the table has them")
    if job.event_time and (job.event_time not in record.names or record[job.event_time].dataType != TimestampType()):
        raise OptionError("--event-time", job.event_time, f"a timestamp field of the record: {record.simpleString()}")
    unknown = [name for name in job.deduplicate_by if name not in (*record.names, "_key")]
    if unknown:
        raise OptionError("--deduplicate-by", unknown[0], f"_key, or a field of the record: {', '.join(record.names)}")


def deduplicated(rows: DataFrame, job: Job) -> DataFrame:
    """The first row of each key within the watermark, and each dead letter."""
    if job.deduplicate_by:
        names = []
        for at, name in enumerate(job.deduplicate_by):
            key = F.col("_key") if name == "_key" else F.col(RECORD).getField(name)
            rows = rows.withColumn(f"_key_{at}", F.when(F.col(REASON).isNull(), key))
            names.append(f"_key_{at}")
        place = F.struct("_topic", "_partition", "_offset")  # no two dead letters have the same
        rows = rows.withColumn("_place", F.when(F.col(REASON).isNotNull(), place))
        with checked("--watermark", job.watermark, "an interval, as in 1 hour"):
            rows = rows.withWatermark(EVENT_TIME, job.watermark)
        rows = rows.dropDuplicatesWithinWatermark([*names, "_place"])
        rows = rows.drop(*names, "_place")
    return rows.observe(f"{METRICS} written", F.count(F.lit(1)).alias("written"))


def batch_writer(job: Job) -> Callable[[DataFrame, int], None]:
    """For foreachBatch. The first micro-batch of a run may have been written before a crash."""
    tables = job.tables()
    is_first = True

    def write(batch: DataFrame, number: int) -> None:
        nonlocal is_first
        spark = batch.sparkSession
        if is_first:
            table_formats.restart_tables(spark, tables.values(), number)
        is_first = False
        rows = batch.persist()
        try:
            if job.schema_registry:
                check_schemas(rows, Registry(job.schema_registry, job.registry_credentials), job.value_format.upper())
            tables[RECORDS].append(numbered(good_rows(rows), number), number)
            tables[DEAD].append(numbered(dead_rows(rows), number), number)
        finally:
            rows.unpersist()
        for table in tables.values():
            table.maintain(spark, number, job.compact_after, job.keep_days)

    return write


def good_rows(rows: DataFrame) -> DataFrame:
    """The table RECORDS: the fields of the record, and the columns of SOURCE."""
    return rows.where(F.col(REASON).isNull()).select(DAY, f"{RECORD}.*", *SOURCE)


def dead_rows(rows: DataFrame) -> DataFrame:
    """The table DEAD: the value and its reason, and the columns of SOURCE."""
    return rows.where(F.col(REASON).isNotNull()).select(DAY, F.col(REASON).alias("reason"), "value", *SOURCE)


def _day(time: Column) -> Column:
    """The day in UTC, whatever the session's time zone: a micro-batch that runs again has the same."""
    return F.date_from_unix_date(F.floor(F.unix_seconds(time) / 86_400).cast("int"))


def parse_arguments(arguments: Sequence[str]) -> Job:
    """Run from the command line."""
    parser = common_parser("ingest", (__doc__ or "").partition("\n")[0], "the folder or URL for the tables")
    parser.add_argument("--topics", required=True, help="topics, separated by commas")
    parser.add_argument("--value-format", default="json", choices=FORMATS, help="(%(default)s)")
    parser.add_argument(
        "--schema", default="", metavar="FILE", help="DDL for JSON, a schema of Avro, a set of descriptors for Protobuf"
    )
    parser.add_argument("--message", default="", metavar="NAME", help="the type of Protobuf values, as in shop.Order")
    parser.add_argument("--framed", action="store_true", help="Protobuf values begin with the id of a schema")
    parser.add_argument(
        "--schema-registry", default="", metavar="URL", help="has the schema of Avro or Protobuf values; for --schema"
    )
    parser.add_argument("--registry-credentials", default="", metavar="FILE", help="USER:PASSWORD of the registry")
    parser.add_argument("--group", default="", help="the group that progress is committed to")
    parser.add_argument("--event-time", default="", metavar="FIELD", help="a timestamp (the record's timestamp)")
    parser.add_argument("--event-time-ahead-max", default="1 day", help="of now; later: dead letters (%(default)s)")
    parser.add_argument("--deduplicate-by", default="", metavar="FIELDS", help="fields with commas, or _key")
    parser.add_argument("--watermark", default="1 hour", help="how late a duplicate may come (%(default)s)")
    parser.add_argument("--once", action="store_true", help="end when all records of now are in the table")
    parser.add_argument("--interval", default="10 seconds", help="between micro-batches without --once (%(default)s)")
    add_table_arguments(parser)
    given = parse_common(parser, list(arguments))
    if given.pop("once"):
        given["interval"] = ""
    given["deduplicate_by"] = tuple(name.strip() for name in given["deduplicate_by"].split(",") if name.strip())
    given["registry_credentials"] = secret_of(parser, "--registry-credentials", given["registry_credentials"])
    return Job(**given)


def follow(query: StreamingQuery, show: Callable[[str], None]) -> None:
    """Show a line for each micro-batch until the query ends. Raises what the query raises."""
    last = -1
    is_over = False
    while not is_over:
        is_over = bool(query.awaitTermination(PROGRESS_INTERVAL_S))
        for each in query.recentProgress:
            progress = json.loads(each.json)
            if progress["batchId"] > last and progress["numInputRows"]:
                last = progress["batchId"]
                show(progress_line(progress))


def run(spark: SparkSession, job: Job, show: Callable[[str], None]) -> None:
    """Run the query to its end; start it again for schemas that are new in the registry. Raises OptionError, also when
    another process runs the job, and what the query raises."""
    with locked(job.checkpoint_path):
        _run(spark, job, show)


def _run(spark: SparkSession, job: Job, show: Callable[[str], None]) -> None:
    is_over = False
    while not is_over:
        query = start(spark, job)
        try:
            follow(query, show)
            is_over = True
        except KeyboardInterrupt:
            is_over = True
        except StreamingQueryException as error:
            found = set(schema_ids(str(error))) - set(job.schema_ids)
            if not found:
                raise
            job = replace(job, schema_ids=(*job.schema_ids, *sorted(found)))
            _log.info("Started again for new schemas of the registry", ids=sorted(found))
        finally:
            query.stop()  # it must not go on without the lock


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until all records are in the table or, without --once, until it is interrupted."""
    return exit_code("ingest", lambda: _main(sys.argv[1:] if arguments is None else arguments))


def _main(arguments: Sequence[str]) -> None:
    job = parse_arguments(arguments)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.appName("ingest").getOrCreate()
    try:
        run(spark, job, lambda line: print(line, flush=True))
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
