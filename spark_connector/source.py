"""`format("rota")`: what Spark asks for a reader, a stream or a sink. Options are read when the query is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from rota.spark_connector.batch import RotaReader
from rota.spark_connector.options import batch_options, stream_options
from rota.spark_connector.schema import spark_schema
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


def register(spark: SparkSession) -> None:
    """Make `format("rota")` known to a session, and let Spark hand filters to it."""
    spark.dataSource.register(RotaDataSource)
    spark.conf.set(PUSHDOWN, "true")
