"""Topics of Rota and of Apache Kafka in Spark: format("rota"), for batches and streams, without a jar.

    from rota.spark_connector import register
    register(spark)
    spark.read.format("rota").options(**{"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}).load()

docs/SPARK.md has the options; `rota.spark_connector.pipelines.group_activity` is a job that is ready to run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.spark_connector.source import RotaDataSource, register

__all__ = ["RotaDataSource", "register"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"rota.spark_connector has no {name}; it has {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module("rota.spark_connector.source"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
