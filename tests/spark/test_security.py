"""Credentials in options are in no plan, no progress and no error; the options reach driver, executors and sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

Options = dict[str, str]
SECRET = "planted-secret"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{SECRET}";'
SECURE: Options = {
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": JAAS,
    "kafka.ssl.keystore.password": SECRET,
    "kafka.ssl.key.password": SECRET,
    "kafka.sasl.password": SECRET,
}


def test_no_plan_has_a_secret(spark: SparkSession, base: Options, new_topic: Any, send: Any, capfd: Any) -> None:
    topic = new_topic()
    send(topic, [b"1"])
    read = spark.read.format("rota").options(**base, **SECURE, subscribe=topic).load()
    assert read.count() == 1
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        read.explain(mode=mode)
    plans = str(read._jdf.queryExecution().toString()) + read._jdf.queryExecution().logical().toJSON()
    shown = capfd.readouterr()
    assert SECRET not in plans + shown.out + shown.err + repr(read)


def test_no_progress_of_a_stream_has_a_secret(
    spark: SparkSession, base: Options, new_topic: Any, send: Any, tmp_path: Path
) -> None:
    topic = new_topic()
    send(topic, [b"1"])
    read = spark.readStream.format("rota").options(**base, **SECURE, subscribe=topic, startingOffsets="earliest").load()
    writer = read.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(60)
    progress = str(query.recentProgress) + str(query.lastProgress)
    assert SECRET not in progress
    kept = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert kept
    assert not any(SECRET.encode() in content for content in kept)


@pytest.mark.parametrize(
    "wrong", [{"kafka.security.protocol": "SASL_TLS"}, {"kafka.sasl.jaas": JAAS}, {"sasl.jaas.config": JAAS}]
)
def test_no_error_has_a_secret(spark: SparkSession, base: Options, wrong: Options) -> None:
    options = base | SECURE | wrong | {"subscribe": "topic"}
    with pytest.raises(Exception, match=r"option|setting") as failed:
        spark.read.format("rota").options(**options).load().count()
    assert SECRET not in str(failed.value)
