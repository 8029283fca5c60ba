"""`format("rota")`: what Spark asks for a reader, a stream or a sink. Options are read when the query is loaded."""

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

from rota.spark_connector.batch import RotaReader
from rota.spark_connector.errors import OptionError
from rota.spark_connector.options import BATCH, STREAM, ReadOptions, batch_options, stream_options, write_options
from rota.spark_connector.schema import spark_schema
from rota.spark_connector.sink import RotaStreamWriter, RotaWriter
from rota.spark_connector.stream import RotaStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


class RotaDataSource(DataSource):
    """Reads and writes the topics of Rota and of Apache Kafka. Options: docs/SPARK.md."""

    @classmethod
    def name(cls) -> str:
        """As in spark.read.format("rota")."""
        return "rota"

    def schema(self) -> StructType:
        """Spark's own `kafka` columns. Asked for by `load()`, which does not tell a batch from a stream: options that
        neither of them takes are refused here, the others when the query starts. Raises OptionError."""
        options = dict(self.options)
        try:
            told = batch_options(options)
        except OptionError as of_a_batch:
            try:
                told = stream_options(options)
            except OptionError as of_a_stream:
                raise (of_a_stream if _is_of_a_stream(options) else of_a_batch) from None
        return spark_schema(include_headers=told.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch query. Raises OptionError."""
        return RotaReader(_with_columns(batch_options(dict(self.options)), schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # Spark's name
        """A streaming query. Raises OptionError."""
        return RotaStreamReader(_with_columns(stream_options(dict(self.options)), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch of rows to write. Raises OptionError."""
        if overwrite:
            raise OptionError("mode", "overwrite", "append: records that are written stay")
        return RotaWriter(write_options(dict(self.options)), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A stream of rows to write. Raises OptionError."""
        return RotaStreamWriter(write_options(dict(self.options)), schema)


def _is_of_a_stream(options: Mapping[str, str]) -> bool:
    only = {name.lower() for name in STREAM} - {name.lower() for name in BATCH}
    return any(name.lower() in only for name in options)


def _with_columns(options: ReadOptions, schema: StructType) -> ReadOptions:
    """The same options. Raises OptionError when the user has given other columns than there are."""
    right = spark_schema(include_headers=options.include_headers)
    if [(one.name, one.dataType) for one in schema] != [(one.name, one.dataType) for one in right]:
        raise OptionError("schema", schema.simpleString(), f"left out, or {right.simpleString()}; select and cast then")
    return options


def register(spark: SparkSession) -> None:
    """Make `format("rota")` known to a session, and let Spark hand filters to it."""
    spark.dataSource.register(RotaDataSource)
    spark.conf.set(PUSHDOWN, "true")
