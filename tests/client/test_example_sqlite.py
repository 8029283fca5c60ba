"""The example that keeps its offsets in SQLite, killed in the middle of transactions: every record is counted once."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from tests.interop.kit import create_topic, produce, until
from tests.unit.client.network.scripted import eventually

from rota.client import Admin, AdminConfig, OffsetOutOfRange, TopicPartition

PROGRAM = Path(__file__).parents[2] / "examples" / "sqlite_exactly_once.py"
RECORDS, AT_ONCE = 300, 20


@contextmanager
def counting(bootstrap: str, topic: str, database: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program, killed in the end, in the middle of whatever it does."""
    given = [bootstrap, topic, str(database), "--records-at-once", str(AT_ONCE)]
    program = subprocess.Popen([sys.executable, str(PROGRAM), *given], stderr=subprocess.PIPE)
    try:
        yield program
    finally:
        program.kill()
        _, answer = program.communicate()
        assert b"Traceback" not in answer, answer.decode()


@contextmanager
def read_only(database: Path) -> Iterator[None]:
    """While somebody reads, a transaction can begin and not end."""
    with closing(sqlite3.connect(database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield
        reader.execute("ROLLBACK")


def counted(database: Path) -> int:
    """How often records were counted."""
    with closing(sqlite3.connect(database)) as reader:
        return int(reader.execute("SELECT coalesce(sum(seen), 0) FROM counts").fetchone()[0])


def tables(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as reader:
        return reader.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone() == (2,)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The program as a module."""
    spec = spec_from_file_location("sqlite_exactly_once", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def database(example: ModuleType, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "counts.db", isolation_level=None)) as database:
        database.executescript(example.TABLES)
        yield database


def seen(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT coalesce(sum(seen), 0) FROM counts").fetchone()[0])


async def cut(bootstrap: str, topic: str, offset: int) -> None:
    """Delete the records before the offset, as retention does."""
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.delete_records({TopicPartition(topic, 0): offset})


@asynccontextmanager
async def running(
    example: ModuleType, bootstrap: str, topic: str, database: sqlite3.Connection
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(example.count(bootstrap, topic, database, AT_ONCE))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_it_stops_when_retention_deleted_uncounted_records(
    bootstrap: str, example: ModuleType, database: sqlite3.Connection
) -> None:
    topic = create_topic(bootstrap, 1)
    produce(bootstrap, topic, [b"%d" % number for number in range(5)])
    async with running(example, bootstrap, topic, database):
        await eventually(lambda: seen(database) == 5)
    produce(bootstrap, topic, [b"%d" % number for number in range(5, 10)])
    await cut(bootstrap, topic, 8)
    async with running(example, bootstrap, topic, database) as task:
        with pytest.raises(OffsetOutOfRange):
            await asyncio.wait_for(task, 20)
    assert seen(database) == 5


async def test_it_begins_with_the_first_record_that_retention_left(
    bootstrap: str, example: ModuleType, database: sqlite3.Connection
) -> None:
    topic = create_topic(bootstrap, 1)
    produce(bootstrap, topic, [b"%d" % number for number in range(10)])
    await cut(bootstrap, topic, 8)
    async with running(example, bootstrap, topic, database):
        await eventually(lambda: seen(database) == 2)


async def test_a_member_that_was_thrown_out_writes_nothing(
    bootstrap: str, example: ModuleType, database: sqlite3.Connection
) -> None:
    topic = create_topic(bootstrap, 1)
    partition = TopicPartition(topic, 0)
    produce(bootstrap, topic, [b"1"])
    async with running(example, bootstrap, topic, database) as thrown_out:
        await eventually(lambda: seen(database) == 1)
        assert example.take_ownership(database, partition) == (2, 1)
        produce(bootstrap, topic, [b"2"])
        with pytest.raises(example.Fenced):
            await asyncio.wait_for(thrown_out, 20)
    assert seen(database) == 1
    assert example.take_ownership(database, partition) == (3, 1)


def test_killed_and_restarted_it_counts_every_record_once(bootstrap: str, tmp_path: Path) -> None:
    database = tmp_path / "counts.db"
    journal = database.with_name("counts.db-journal")
    topic = create_topic(bootstrap, 3)
    with counting(bootstrap, topic, database):  # there is nothing to count yet: it makes its tables
        until(lambda: tables(database), "the tables")
    values = [b"%d" % number for number in range(RECORDS)]
    produce(bootstrap, topic, values)
    with read_only(database), counting(bootstrap, topic, database):
        until(journal.exists, "the first transaction")
    assert counted(database) == 0
    with counting(bootstrap, topic, database):
        until(lambda: counted(database), "a transaction that is done")
    with counting(bootstrap, topic, database):
        until(lambda: counted(database) >= RECORDS, "all records")
    with closing(sqlite3.connect(database)) as reader:
        assert dict(reader.execute("SELECT value, seen FROM counts")) == dict.fromkeys(values, 1)
        assert reader.execute("SELECT sum(next) FROM offsets").fetchone() == (RECORDS,)
