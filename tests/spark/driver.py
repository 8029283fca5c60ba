"""A driver of its own, which may be killed: one run of the copy of `test_exactly_once`.

python -m tests.spark.driver JSON       [options of the source, options of the sink, folder of the checkpoint]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.home import JVM
from tests.spark.killing import KilledSource, copy

from rota.spark_connector import register

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": " ".join(JVM),
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
}


def main(source: dict[str, str], sink: dict[str, str], checkpoint: str) -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").appName("driver")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    spark.dataSource.register(KilledSource)
    copy(spark, source, sink, Path(checkpoint))


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
