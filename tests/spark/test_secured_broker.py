"""Source, sink and pipelines with a broker over SASL_SSL and mutual TLS; no secret is in what Spark keeps of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession
from tests.interop.kit import create_topic
from tests.interop.security.rota_broker import SecureRota
from tests.soak import soak_only
from tests.spark.conftest import Options, loaded, written
from tools.peer.certificates import KEY_PASSWORD, encrypted_key
from tools.peer.secure import PASSWORD, USER

from rota.spark_connector.pipelines import ingest

WAYS = ("SASL_SSL", "MTLS")
SHOWN = '"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"'
UI_PAGES = ("environment/", "SQL/", "StreamingQuery/", "jobs/", "stages/")


@pytest.fixture(scope="module", autouse=True)
def all_plans(spark: SparkSession) -> Iterator[None]:
    """Spark keeps the plans of these queries in every form."""
    spark.conf.set("spark.sql.ui.explainMode", "extended")
    yield
    spark.conf.set("spark.sql.ui.explainMode", "simple")


@pytest.fixture(scope="module")
def key(secure: SecureRota) -> str:
    """The key of the client's certificate, encrypted with KEY_PASSWORD."""
    return encrypted_key(secure.client).read_text()


def options(secure: SecureRota, way: str, key: str, password: str = PASSWORD) -> Options:
    """As the official connector has them."""
    tls = {
        "kafka.bootstrap.servers": secure.address(way),
        "kafka.security.protocol": "SSL" if way == "MTLS" else way,
        "kafka.ssl.truststore.location": str(secure.ca),
    }
    if way == "MTLS":
        chain = secure.client.certificate.read_text()
        own = {"kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.certificate.chain": chain}
        return {**tls, **own, "kafka.ssl.keystore.key": key, "kafka.ssl.key.password": KEY_PASSWORD}
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="{USER}" password="{password}";'
    return {**tls, "kafka.sasl.mechanism": "SCRAM-SHA-512", "kafka.sasl.jaas.config": jaas}


def check_no_secret(text: str, key: str) -> None:
    """`text` has no password, and no line of the key."""
    assert "planted" not in text
    assert not [line for line in key.splitlines()[1:-1] if line in text]


@pytest.mark.parametrize("way", ["SASL_SSL", pytest.param("MTLS", marks=soak_only)])  # ingest has the other way
def test_source_and_sink(
    spark: SparkSession, secure: SecureRota, key: str, way: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rows are written as a batch, copied by a stream, and read; driver, tasks and sink all log in."""
    secured, topics = options(secure, way, key), [create_topic(secure.address("PLAINTEXT"), 2) for _ in range(2)]
    rows = spark.range(20).selectExpr("string(id) AS key", "string(id) AS value")
    rows.write.format("rota").mode("append").options(**secured, topic=topics[0]).save()
    read = spark.readStream.format("rota").options(**secured, subscribe=topics[0], startingOffsets="earliest").load()
    writer = read.select("key", "value").writeStream.format("rota").options(**secured, topic=topics[1])
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination(60)
    query.explain(extended=True)
    copied = loaded(spark, secured, subscribe=topics[1])
    copied.explain(mode="formatted")
    assert sorted(int(row.value) for row in copied.collect()) == list(range(20))
    shown = capfd.readouterr()
    assert "MicroBatchScan" in shown.out
    check_no_secret(shown.out + shown.err + str(query.recentProgress), key)


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_login_fails_with_the_reason(
    spark: SparkSession, secure: SecureRota, key: str, way: str, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = options(secure, way, key, "planted-wrong")
    if way == "MTLS":
        wrong = {name: value for name, value in wrong.items() if "key" not in name}
    reason = "refused the authentication with SCRAM-SHA-512" if way == "SASL_SSL" else "ssl_keystore_location"
    with pytest.raises(Exception, match=reason) as refused:
        loaded(spark, wrong, subscribe="topic").count()
    shown = capfd.readouterr()
    check_no_secret(str(refused.value) + shown.out + shown.err, key)


def test_ingest_takes_the_settings_from_a_file(
    spark: SparkSession, secure: SecureRota, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = create_topic(secure.address("PLAINTEXT"), 1)
    written(secure.address("PLAINTEXT"), topic, [b'{"id": 1}', b'{"id": 2}'])
    schema, config = tmp_path / "schema", tmp_path / "client.properties"
    schema.write_text("id long")
    config.write_text(
        f"security.protocol=SSL\nssl.truststore.location={secure.ca}\n"
        f"ssl.keystore.location={secure.client.keystore}\nssl.key.password={KEY_PASSWORD}\n"
    )
    given = {"--bootstrap-servers": secure.address("MTLS"), "--topics": topic, "--output": str(tmp_path / "out")}
    given |= {"--schema": str(schema), "--command-config": str(config), "--group": topic}
    job = ingest.parse_arguments(["--once", *(word for pair in given.items() for word in pair)])
    lines: list[str] = []
    ingest.follow(ingest.start(spark, job), lines.append)
    assert "written 2" in lines[-1]
    shown = capfd.readouterr()
    assert "planted" not in repr(job) + shown.out + shown.err


def test_what_spark_keeps_has_no_secret(spark: SparkSession, secure: SecureRota, key: str) -> None:
    """The event log and the UI, with the plans of the queries of this file in every form."""
    row = spark.range(1).selectExpr("'v' AS value")
    for way in WAYS:  # the plan of a write has the options of the sink
        row.write.format("rota").mode("append").options(**options(secure, way, key), topic="kept").save()
    log = event_log(spark)
    assert SHOWN in log
    check_no_secret(log, key)
    context = spark.sparkContext
    api = f"api/v1/applications/{context.applicationId}/sql?details=true&planDescription=true&length=1000"
    for page in (*UI_PAGES, api):
        shown = page_of(context.uiWebUrl, page)
        assert page != api or "Parsed Logical Plan" in shown
        check_no_secret(shown, key)


def event_log(spark: SparkSession) -> str:
    """What Spark writes for its history server, with all events until now."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    folder = context.getConf().get("spark.eventLog.dir", "")  # of the context, which may be older than this session
    files = Path(folder or "").rglob("*")
    return "".join(file.read_text(errors="replace") for file in files if file.is_file())


def page_of(ui: Any, page: str) -> str:
    with urlopen(f"{ui}/{page}", timeout=30) as answer:
        text: bytes = answer.read()
    return text.decode()
