"""`format("rota")`: the data source that Spark asks for readers and writers, with the parsed options of the query.

Spark makes it anew in several processes for each query, most of which need its name or its schema alone: readers and
writers, with the client below them, are imported when one is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from rota.spark_connector.errors import OptionError
from rota.spark_connector.options import (
    BATCH,
    STREAM,
    TRANSACTIONAL_ID,
    ReadOptions,
    batch_options,
    stream_options,
    write_options,
)
from rota.spark_connector.schema import spark_schema
from rota.spark_connector.secret_options import redaction_pattern
from rota.spark_connector.spark_api import HAS_STREAM_LIMITS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
REDACTED_DEFAULT: Final = "(?i)url"  # Spark's own; a session of Spark Connect does not have it
REDACTED: Final = "spark.sql.redaction.options.regex"  # a plan of a write has the options of the sink


class RotaDataSource(DataSource):
    """Reads and writes the topics of Rota and of Apache Kafka. Options: docs/SPARK.md."""

    @classmethod
    def name(cls) -> str:
        """As in spark.read.format("rota")."""
        return "rota"

    def schema(self) -> StructType:
        """The columns of Spark's own `kafka` source. `load()` calls it for batches and streams alike: options that
        neither accepts are refused here, the others when the query starts. Raises OptionError."""
        options = dict(self.options)
        try:
            parsed = batch_options(options)
        except OptionError as batch_error:
            try:
                parsed = stream_options(options)
            except OptionError as stream_error:
                raise (stream_error if _has_stream_options(options) else batch_error) from None
        return spark_schema(include_headers=parsed.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch query. Raises OptionError."""
        from rota.spark_connector.batch import RotaReader

        return RotaReader(_check_schema(batch_options(dict(self.options)), schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # Spark's name
        """A streaming query. Raises OptionError."""
        options = _check_schema(stream_options(dict(self.options)), schema)
        if not HAS_STREAM_LIMITS:
            from rota.spark_connector.stream_without_limits import RotaUnlimitedStreamReader

            return RotaUnlimitedStreamReader(options)
        from rota.spark_connector.stream import RotaStreamReader

        return RotaStreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch of rows to write. Raises OptionError."""
        if overwrite:
            raise OptionError("mode", "overwrite", "append: a topic cannot be overwritten")
        from rota.spark_connector.sink import RotaWriter

        options = write_options(dict(self.options))
        if options.transactions is not None:
            expected = "left out: only a stream writes in transactions, whose micro-batches have numbers"
            raise OptionError(TRANSACTIONAL_ID, options.transactions.prefix, expected)
        return RotaWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A stream of rows to write. Raises OptionError, and KafkaError where its decision topic cannot be created."""
        from rota.spark_connector.sink import RotaStreamWriter

        writer = RotaStreamWriter(write_options(dict(self.options)), schema)
        writer.begin()
        return writer


def _has_stream_options(options: Mapping[str, str]) -> bool:
    only = {name.lower() for name in STREAM} - {name.lower() for name in BATCH}
    return any(name.lower() in only for name in options)


def _check_schema(options: ReadOptions, schema: StructType) -> ReadOptions:
    """The same options. Raises OptionError when the user has given a schema with other columns."""
    expected = spark_schema(include_headers=options.include_headers)
    if [(column.name, column.dataType) for column in schema] != [(column.name, column.dataType) for column in expected]:
        raise OptionError(
            "schema", schema.simpleString(), f"left out, or {expected.simpleString()}; select and cast afterwards"
        )
    return options


def register(spark: SparkSession) -> None:
    """Register `format("rota")` in a session, enable filter pushdown to Python data sources, and have Spark redact the
    options that are secrets."""
    spark.dataSource.register(RotaDataSource)
    spark.conf.set(PUSHDOWN, "true")
    spark.conf.set(REDACTED, redaction_pattern(spark.conf.get(REDACTED, REDACTED_DEFAULT) or REDACTED_DEFAULT))
