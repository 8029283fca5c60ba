"""What Spark asks of `format("rota")`, and when it is refused."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType
from tests.interop.kit import unique

from rota.client import Admin, AdminConfig
from rota.spark_connector.batch import RotaReader
from rota.spark_connector.errors import OptionError
from rota.spark_connector.schema import spark_schema
from rota.spark_connector.sink import RotaStreamWriter, RotaWriter
from rota.spark_connector.source import REDACTED, RotaDataSource, register
from rota.spark_connector.stream import RotaStreamReader

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
READ = {**SERVERS, "subscribe": "t"}
VALUE = StructType().add("value", "string")


def source(**options: str) -> RotaDataSource:
    return RotaDataSource(CaseInsensitiveDict(options))


def test_it_is_called_rota() -> None:
    assert RotaDataSource.name() == "rota"


@pytest.mark.parametrize("word", ["true", "TRUE", "false"])
def test_include_headers_adds_a_column(word: str) -> None:
    schema = source(**READ, INCLUDEHEADERS=word).schema()
    assert ("headers" in schema.names) == (word.lower() == "true")


def test_it_reads_and_writes_batches_and_streams() -> None:
    schema = spark_schema(include_headers=False)
    assert isinstance(source(**READ).reader(schema), RotaReader)
    assert isinstance(source(**READ).streamReader(schema), RotaStreamReader)
    assert isinstance(source(**SERVERS, topic="t").writer(VALUE, overwrite=False), RotaWriter)
    assert isinstance(source(**SERVERS, topic="t").streamWriter(VALUE, overwrite=False), RotaStreamWriter)


def test_invalid_options_are_refused_before_any_request() -> None:
    with pytest.raises(OptionError, match="startingOffsets"):
        source(**READ, startingOfset="latest").reader(spark_schema(include_headers=False))
    with pytest.raises(OptionError, match="endingOffsets"):
        source(**READ, endingOffsets="latest").streamReader(spark_schema(include_headers=False))


def test_records_cannot_be_overwritten() -> None:
    with pytest.raises(OptionError, match="append"):
        source(**SERVERS, topic="t").writer(VALUE, overwrite=True)


def test_only_a_stream_writes_in_transactions(bootstrap: str) -> None:
    """The driver creates the topic of its decisions before the tasks, each of which reads it."""
    options = {"kafka.bootstrap.servers": bootstrap, "topic": "t", "kafka.transactional.id": unique("id")}
    assert isinstance(source(**options).streamWriter(VALUE, overwrite=False), RotaStreamWriter)
    assert f"{options['kafka.transactional.id']}-decisions" in topics(bootstrap)
    with pytest.raises(OptionError, match="only a stream"):
        source(**options).writer(VALUE, overwrite=False)


def topics(bootstrap: str) -> set[str]:
    async def names() -> set[str]:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
            return set(await admin.list_topics())

    return asyncio.run(names())


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"subscripe": "t"}, "subscribe"),
        ({**READ, "assign": "{}"}, "assign, subscribe"),
        ({**READ, "maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger"),
        ({**READ, "endingOffsets": "soon"}, "endingOffsets"),
        ({"subscribe": "t"}, "kafka.bootstrap.servers"),
    ],
)
def test_options_of_neither_batch_nor_stream_are_refused_by_load(wrong: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        source(**{**SERVERS, **wrong} if named != "kafka.bootstrap.servers" else wrong).schema()


@pytest.mark.parametrize("option", ["maxOffsetsPerTrigger", "endingTimestamp"])
def test_options_of_batch_or_stream_only_are_accepted_by_load(option: str) -> None:
    assert source(**READ, **{option: "5"}).schema() == spark_schema(include_headers=False)


@pytest.mark.parametrize("kind", ["reader", "streamReader"])
def test_a_schema_with_other_columns_is_refused(kind: str) -> None:
    with pytest.raises(OptionError, match=r"schema.*select and cast"):
        getattr(source(**READ), kind)(VALUE)
    getattr(source(**READ, includeHeaders="true"), kind)(spark_schema(include_headers=True))


def test_a_process_that_needs_the_name_or_the_schema_does_not_import_the_client() -> None:
    """Spark makes the data source anew in several processes for each query."""
    code = """
import sys
from rota.spark_connector.source import REDACTED, RotaDataSource, register

source = RotaDataSource({"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "t"})
print(len(source.schema()), [name for name in ("asyncio", "structlog", "rota.client.network") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "7 []\n"


class ConnectSession:
    """What `register` uses of a session of Spark Connect, which has only the settings that were set."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.dataSource = self.conf = self

    def register(self, source: type) -> None:
        self.settings["source"] = source.__name__

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def get(self, name: str, *default: str) -> str:
        if name not in self.settings and not default:
            raise LookupError(f"[SQL_CONF_NOT_FOUND] {name}")
        return self.settings.get(name, *default)


def test_a_session_without_the_redaction_setting_keeps_the_default_of_spark() -> None:
    session = ConnectSession()
    register(session)  # type: ignore[arg-type] # what it uses of one
    assert session.settings["source"] == "RotaDataSource"
    assert re.search(session.settings[REDACTED], "URL")
    assert re.search(session.settings[REDACTED], "kafka.sasl.jaas.config")
