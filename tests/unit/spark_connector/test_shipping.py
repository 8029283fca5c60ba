"""Readers and writers where their package is missing: in another process, as an executor's."""

from __future__ import annotations

import pickle
import platform
import subprocess
import sys

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from rota.spark_connector.batch import RotaReader
from rota.spark_connector.options import batch_options, stream_options, write_options
from rota.spark_connector.shipping import Shipped
from rota.spark_connector.sink import RotaStreamWriter, RotaWriter
from rota.spark_connector.stream import RotaStreamReader

SERVERS = {"kafka.bootstrap.servers": "h:1"}
READ = {**SERVERS, "subscribe": "t"}
WRITE = write_options({**SERVERS, "topic": "t"}), StructType().add("value", "string")
SHIPPED = {
    "reader": RotaReader(batch_options(READ)),
    "stream reader": RotaStreamReader(stream_options(READ)),
    "writer": RotaWriter(*WRITE),
    "stream writer": RotaStreamWriter(*WRITE),
}
EXECUTOR = """
import pickle, sys
for name in sys.argv[1:]:
    sys.modules[name] = None  # importing it is a ModuleNotFoundError
pickle.load(sys.stdin.buffer)
"""


def error_of(shipped: Shipped, *missing: str) -> str:
    """The last line of a Python that has no such module."""
    data = cloudpickle.dumps(shipped)
    command = [sys.executable, "-c", EXECUTOR, *missing]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)
    return done.stderr.decode().strip().rpartition("\n")[2]


@pytest.mark.parametrize("kind", SHIPPED)
def test_they_arrive_with_their_options(kind: str) -> None:
    made = pickle.loads(cloudpickle.dumps(SHIPPED[kind]))
    assert type(made) is type(SHIPPED[kind])
    assert made._options == SHIPPED[kind]._options


def test_an_executor_without_the_package_says_what_to_do() -> None:
    error = error_of(SHIPPED["reader"], "rota")
    assert error.startswith("RuntimeError: format('rota') cannot run on this executor: ")
    for part in ("rota", sys.executable, platform.node(), 'pip install "rota[spark]"', "spark.archives"):
        assert part in error


def test_an_executor_without_a_dependency_names_it() -> None:
    assert "import of pyarrow halted" in error_of(SHIPPED["writer"], "pyarrow")


def test_an_executor_with_the_package_says_nothing() -> None:
    assert error_of(SHIPPED["stream reader"]) == ""
