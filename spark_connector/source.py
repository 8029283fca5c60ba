"""`format("rota")`: what Spark asks for a reader, a stream or a sink. Options are read when the query is loaded."""

from __future__ import annotations

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
from rota.spark_connector.options import batch_options, stream_options, write_options
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
        """Spark's own `kafka` columns."""
        return spark_schema(include_headers=str(self.options.get("includeHeaders", "false")).lower() == "true")

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch query. Raises OptionError."""
        return RotaReader(batch_options(dict(self.options)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # Spark's name
        """A streaming query. Raises OptionError."""
        return RotaStreamReader(stream_options(dict(self.options)))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch of rows to write. Raises OptionError."""
        if overwrite:
            raise OptionError("mode", "overwrite", "append: records that are written stay")
        return RotaWriter(write_options(dict(self.options)), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A stream of rows to write. Raises OptionError."""
        return RotaStreamWriter(write_options(dict(self.options)), schema)


def register(spark: SparkSession) -> None:
    """Make `format("rota")` known to a session, and let Spark hand filters to it."""
    spark.dataSource.register(RotaDataSource)
    spark.conf.set(PUSHDOWN, "true")
