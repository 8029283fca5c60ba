"""The example that keeps its offsets in SQLite, killed in the middle of transactions: every record is counted once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.interop.kit import create_topic, produce, until

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
        _, told = program.communicate()
        assert b"Traceback" not in told, told.decode()


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
