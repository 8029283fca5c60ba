"""Count records exactly once, with the offsets kept beside the counts: in one SQLite database, in one transaction.

    python examples/sqlite_exactly_once.py localhost:9092 orders counts.db

Nothing is committed to Kafka. Where each partition goes on is written with what its records did, so a crash at any
moment leaves both or neither; after a restart, or a rebalance, `on_assigned` seeks to where the database stands. A
member that was thrown out and does not know it yet does no harm: its transaction finds the database further on.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3

from rota.client import Consumer, ConsumerConfig, ConsumerRecord, TopicPartition

TABLES = """
CREATE TABLE IF NOT EXISTS counts (value BLOB PRIMARY KEY, seen INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS offsets (topic TEXT, number INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, number));
"""


class Overtaken(Exception):
    """Somebody else has read this partition further."""


def stands_at(database: sqlite3.Connection, partition: TopicPartition) -> int | None:
    """The next offset to read, None before the first record."""
    row = database.execute("SELECT next FROM offsets WHERE topic = ? AND number = ?", partition).fetchone()
    return None if row is None else int(row[0])


def apply(database: sqlite3.Connection, partition: TopicPartition, records: list[ConsumerRecord]) -> None:
    """The counts and the offset behind them: all of it, or nothing."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        if (stands_at(database, partition) or 0) > records[0].offset:
            raise Overtaken(f"{partition}: the database is beyond offset {records[0].offset}")
        for record in records:
            database.execute(
                "INSERT INTO counts VALUES (?, 1) ON CONFLICT (value) DO UPDATE SET seen = seen + 1", (record.value,)
            )
        database.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)", (*partition, records[-1].offset + 1))


async def count(bootstrap: str, topic: str, database: sqlite3.Connection, records_at_once: int) -> None:
    """Until it is stopped."""
    config = ConsumerConfig(
        bootstrap_servers=bootstrap,
        group_id=f"counting-{topic}",
        group_instance_id="counter-1",  # a restart takes its partitions over at once (one name for each process)
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=records_at_once,
    )
    async with Consumer(config) as consumer:

        def seek(partitions: tuple[TopicPartition, ...]) -> None:
            for partition in partitions:
                offset = stands_at(database, partition)
                if offset is not None:
                    consumer.seek(partition, offset)

        consumer.subscribe([topic], on_assigned=seek)
        while True:
            for partition, records in (await consumer.getmany(timeout_ms=1_000)).items():
                apply(database, partition, records)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("bootstrap", help="HOST:PORT of a broker")
    arguments.add_argument("topic")
    arguments.add_argument("database", help="the SQLite file")
    arguments.add_argument("--records-at-once", type=int, default=500)
    given = arguments.parse_args()
    database = sqlite3.connect(given.database, isolation_level=None)
    database.executescript(TABLES)
    try:
        asyncio.run(count(given.bootstrap, given.topic, database, given.records_at_once))
    except KeyboardInterrupt:
        pass
    finally:
        database.close()


if __name__ == "__main__":
    main()
