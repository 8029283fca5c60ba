"""The example that keeps its offsets in SQLite, killed again and again: every record is counted exactly once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.interop.kit import create_topic, produce, until

PROGRAM = Path(__file__).parents[2] / "examples" / "sqlite_exactly_once.py"
RECORDS, AT_ONCE = 1_500, 1  # one transaction for each record: there is time to kill it in the middle
KILLED_AT = (1, 500)


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


def counted(database: Path) -> int:
    """How often records were counted."""
    if not database.exists():
        return 0
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as reader:
        try:
            return int(reader.execute("SELECT coalesce(sum(seen), 0) FROM counts").fetchone()[0])
        except sqlite3.OperationalError:  # the tables are not there yet
            return 0


def test_killed_and_restarted_it_counts_every_record_once(bootstrap: str, tmp_path: Path) -> None:
    database = tmp_path / "counts.db"
    topic = create_topic(bootstrap, 3)
    values = [b"%d" % number for number in range(RECORDS)]
    produce(bootstrap, topic, values)
    after: list[int] = []
    for enough in KILLED_AT:
        with counting(bootstrap, topic, database):
            until(lambda enough=enough: counted(database) >= enough, f"{enough} counted records")  # type: ignore[misc]
        after.append(counted(database))
    assert after[0] < RECORDS, "it was not killed in the middle"
    with counting(bootstrap, topic, database):
        until(lambda: counted(database) >= RECORDS, "all records")
    with closing(sqlite3.connect(database)) as reader:
        assert dict(reader.execute("SELECT value, seen FROM counts")) == dict.fromkeys(values, 1)
        assert reader.execute("SELECT sum(next) FROM offsets").fetchone() == (RECORDS,)
