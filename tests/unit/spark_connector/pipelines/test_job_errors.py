"""What a job says when it ends with an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines import group_activity, ingest, report, report_server
from rota.spark_connector.pipelines.job_errors import checked, exit_code

QUERY = """[STREAM_FAILED] Query terminated with exception: An exception was raised by the Python Proxy:
Traceback (most recent call last):
  File "x.py", line 1, in write
    raise OptionError("--output", location, expected)
rota.spark_connector.errors.OptionError: option --output is '/x'; it must be: another folder

\tat java.base/java.lang.Thread.run(Thread.java:840)"""
FULL = """[STREAM_FAILED] py4j.protocol.Py4JJavaError: An error occurred while calling o1.parquet.
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.fs.X
Caused by: java.io.IOException: No space left on device
\t... 33 more"""


def failing(error: Exception) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OptionError("--output", "/x", "a folder"), "option --output is '/x'; it must be a folder"),
        (OSError(30, "Read-only file system", "/x"), "[Errno 30] Read-only file system: '/x'"),
        (AnalysisException(message="\n[CANNOT_PARSE] it is wrong\n== SQL =="), "[CANNOT_PARSE] it is wrong"),
        (StreamingQueryException(message=QUERY), "option --output is '/x'; it must be: another folder"),
        (StreamingQueryException(message=FULL), "No space left on device"),
    ],
)
def test_an_error_with_a_known_cause_is_a_line(error: Exception, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("ingest", failing(error)) == 2
    assert capsys.readouterr().err == f"ingest: {line}\n"


@pytest.mark.parametrize(
    "error",
    [
        StreamingQueryException(message="[STREAM_FAILED] unknown: java.io.EOFException: x"),
        ConnectionRefusedError(111, "x"),
        KeyError("x"),
    ],
)
def test_others_are_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        exit_code("ingest", failing(error))


def test_a_job_that_ends_well() -> None:
    assert exit_code("ingest", lambda: None) == 0


class Py4JJavaError(Exception):
    """As py4j calls what Spark does not know."""


def test_an_error_of_java_is_one_of_an_option() -> None:
    for error, known in ((Py4JJavaError(), OptionError), (KeyError(), KeyError)):
        with pytest.raises(known), checked("--groups", "(", "a regular expression"):
            raise error


def test_a_value_that_spark_refuses_is_one_of_an_option() -> None:
    with (
        pytest.raises(OptionError, match="--window is 'x'; it must be an interval"),
        checked("--window", "x", "an interval"),
    ):
        raise PySparkException(message="[CANNOT_PARSE_INTERVAL]")


@pytest.mark.parametrize("main", [ingest.main, group_activity.main, report.main, report_server.main])
def test_cl3_a_help_that_cannot_be_written_is_an_error_of_one_line(
    main: Callable[[Sequence[str]], int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["--help"]) == 1
    name = main.__module__.rpartition(".")[2]
    assert capsys.readouterr().err == f"{name}: standard output: No space left on device\n"
