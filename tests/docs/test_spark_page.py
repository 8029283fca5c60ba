"""docs/SPARK.md and docs/GROUP_ACTIVITY.md: every example runs as a reader would run it; the options are all there."""

from __future__ import annotations

import contextlib
import gc
import io
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.interop.kit import create_topic
from tests.spark.conftest import java, official, official_jars, spark, written  # noqa: F401 - the session of those tests

from rota.spark_connector import options

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "SPARK.md").read_text()
ACTIVITY = (ROOT / "docs" / "GROUP_ACTIVITY.md").read_text()
INGEST = (ROOT / "docs" / "INGEST.md").read_text()
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[")  # of the broker in this process

# what holds each command; one that is not here fails the test below
HELD_BY = {
    'pip install "rota[pyspark]"': "tests/docs/test_spark_page.py",
    "python -m venv environment": "tests/spark/test_places.py",
    "environment/bin/pip install": "tests/spark/test_places.py",
    "tar -czf environment.tar.gz": "tests/spark/test_places.py",
    "PYSPARK_PYTHON=./environment/bin/python spark-submit": "tests/spark/test_places.py",
    "python -m rota.spark_connector.pipelines.group_activity": "tests/spark/test_pipeline.py",
    "JOB=$(python": "tests/docs/test_spark_page.py",
    "python -m rota.spark_connector.pipelines.ingest": "tests/spark/test_ingest.py",
    "spark-submit": "tests/spark/test_pipeline.py",
    "python -m rota.spark_connector.pipelines.report": "tests/browser/test_report.py",
    'pip install "rota[report]"': "tests/browser/test_report.py",
    "pip install deltalake": "tests/spark/test_activity_tables.py",
    'pip install "pyiceberg[pyarrow]"': "tests/spark/test_activity_tables.py",
}

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def run(page: str, names: dict[str, object], broker: str, folder: Path) -> None:
    """Its programs one after the other; what a program prints is what the page says."""
    for kind, code, shown in BLOCK.findall(page):
        if kind == "python":
            own = re.sub(r'"(tables|checkpoints|activity)\b', rf'"{folder}/\1', code.replace("127.0.0.1:9092", broker))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(own, code.splitlines()[0], "exec"), names)  # noqa: S102
            lines = [line.rstrip() for line in printed.getvalue().splitlines() if line and not LOG_LINE.match(line)]
            assert lines == shown.splitlines(), code
    gc.collect()


def test_the_examples_print_the_output_of_the_pages(spark: SparkSession, broker: str, tmp_path: Path) -> None:  # noqa: F811
    names: dict[str, object] = {"__name__": "page"}
    run(PAGE, names, broker, tmp_path)
    run(ACTIVITY, names, broker, tmp_path)  # it shows the group that the first one's stream made


def test_a_stream_of_the_official_connector_keeps_its_checkpoint(
    spark: SparkSession,  # noqa: F811
    official: str,  # noqa: F811
    broker: str,
    tmp_path: Path,
) -> None:
    topic = create_topic(broker, 1)

    def table_after(kind: str, record: bytes) -> list[bytes]:
        written(broker, topic, [record])
        read = spark.readStream.format(kind).option("kafka.bootstrap.servers", broker).option("subscribe", topic)
        writing = read.option("startingOffsets", "earliest").load().select("value").writeStream.format("parquet")
        writing = writing.option("path", f"{tmp_path}/t").option("checkpointLocation", f"{tmp_path}/c")
        writing.trigger(availableNow=True).start().awaitTermination()
        return sorted(bytes(row.value) for row in spark.read.parquet(f"{tmp_path}/t").collect())

    assert table_after(official, b"1") == [b"1"]
    assert table_after("rota", b"2") == [b"1", b"2"]
    assert table_after(official, b"3") == [b"1", b"2", b"3"]


def test_every_command_is_held_by_a_test() -> None:
    commands = [
        line
        for page in (PAGE, ACTIVITY, INGEST)
        for kind, text, _ in BLOCK.findall(page)
        if kind == "sh"
        for line in text.replace("\\\n", " ").splitlines()
        if line and not line.startswith("#")
    ]
    for command in commands:
        held = [test for start, test in HELD_BY.items() if command.startswith(start)]
        assert held, command
        assert (ROOT / held[0]).exists()
    assert len(commands) >= len(HELD_BY)


def test_the_spark_extra_leaves_a_spark_that_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {item.split(">")[0] for item in extras["spark"]}
    assert "pyarrow" in names
    assert not names & {"pyspark", "pandas", "numpy"}
    assert {item.split(">")[0] for item in extras["pyspark"]} == {"rota[spark]", "pyspark"}


def table() -> dict[str, set[str]]:
    """The options of the table and the queries that take them."""
    rows = re.findall(r"^\| `([\w.…]+)` \| ([\w, ]+) \|", PAGE, re.MULTILINE)
    return {
        name: set(where.split(", ")) for name, where in rows if name not in ("key", "value", "partition", "headers")
    }


def test_the_table_has_every_option_with_its_uses() -> None:
    answer = {name: {"batch", "stream", "sink"} if where == {"all"} else where for name, where in table().items()}
    assert answer.pop("kafka.…") == {"batch", "stream", "sink"}
    assert answer.pop(options.TRANSACTIONAL_ID) == {"sink"}
    assert answer.pop("kafka.group.id") == {"batch", "stream"}
    assert answer.pop(options.SERVERS) == {"batch", "stream", "sink"}
    taken = {"batch": options.BATCH, "stream": options.STREAM, "sink": options.WRITE}
    names = {item for valid in taken.values() for item in valid}
    assert answer == {name: {kind for kind, valid in taken.items() if name in valid} for name in names}


def test_the_page_names_the_refused_options() -> None:
    part = PAGE.partition("The options that Spark's connector refuses")[2].partition("The differences")[0]
    assert set(re.findall(r"`(kafka\.[\w.]+)`", part)) == set(options.FORBIDDEN)


def test_the_defaults_are_those_of_the_page() -> None:
    read = options.batch_options({options.SERVERS: "a:1", "subscribe": "t"})
    assert f"({read.offset_retries})" in row("fetchOffset.numRetries")
    assert f"({read.offset_retry_interval_ms}," in row("fetchOffset.retryIntervalMs")
    assert read.fail_on_data_loss
    assert "`true` (default)" in row("failOnDataLoss")
    assert not read.include_headers
    assert "for reading the default is `false`" in row("includeHeaders")
    assert not read.latest_when_no_time
    assert "`error` (default)" in row("startingOffsetsByTimestampStrategy")


def row(option: str) -> str:
    (found,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{option}` |")]
    return found


@pytest.mark.parametrize(("page", "name"), [(INGEST, "ingest"), (ACTIVITY, "group_activity")])
def test_the_command_for_the_program_of_a_job_finds_it(page: str, name: str) -> None:
    (command,) = (line for line in page.splitlines() if line.startswith("JOB="))
    script = command.replace("$(python ", f"$({sys.executable} ") + '\necho "$JOB"'
    found = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).samefile(ROOT / "spark_connector" / "pipelines" / f"{name}.py")
