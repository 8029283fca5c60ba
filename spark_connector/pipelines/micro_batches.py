"""The micro-batches in the rows of a table that has the number of each in a column.

Laws
    A number that no row has is no micro-batch: one without rows is not in the table.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from rota.spark_connector.pipelines.table_files import BATCH


def quoted(name: str) -> str:
    """The name of a table in SQL: each of its parts in backquotes."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))


def catalog_rows(spark: SparkSession, name: str) -> DataFrame:
    """The rows of a table of a catalog, by its quoted name, as they are now."""
    spark.catalog.refreshTable(name)  # a catalog may cache it
    return spark.table(name)


def numbered(rows: DataFrame, number: int) -> DataFrame:
    """Rows with the number of their micro-batch."""
    return rows.withColumn(BATCH, F.lit(number))


def has_later(rows: DataFrame, number: int) -> bool:
    """Whether there are micro-batches after this one."""
    return bool(rows.where(f"{BATCH} > {number}").limit(1).count())


def newest_rows(rows: DataFrame, before: int) -> DataFrame | None:
    """The rows of the newest micro-batch among those before `before`; None: there is none."""
    number = rows.where(f"{BATCH} < {before}").agg(F.max(BATCH)).collect()[0][0]
    return None if number is None else rows.where(f"{BATCH} = {number}")
