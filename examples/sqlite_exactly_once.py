"""Count records exactly once, with the offsets kept beside the counts: in one SQLite database, in one transaction.

    python examples/sqlite_exactly_once.py localhost:9092 orders counts.db

Nothing is committed to Kafka. The next offset of each partition is written in the transaction that writes the counts of
its records, so a crash at any moment leaves both or neither; after a restart, or a rebalance, `on_assigned` seeks to
the offset in the database.

Retention: when records were deleted before they were counted, the program stops with OffsetOutOfRange
(auto_offset_reset is none). It never goes on behind the gap by itself.

Fencing: each assignment of a partition increments its owner number in the database, and each transaction checks that
the number is still the one that it was assigned with. A member that was thrown out of the group and does not know it
yet (its process stood still for longer than the session timeout) can not write after the new owner has begun: its
transaction raises Fenced, and it joins again. The generation of the group can not be that number: it begins anew when a
group was empty for a while.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3

from rota.client import Consumer, ConsumerConfig, ConsumerRecord, TopicPartition

TABLES = """
CREATE TABLE IF NOT EXISTS counts (value BLOB PRIMARY KEY, seen INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS offsets
    (topic TEXT, number INTEGER, owner INTEGER NOT NULL, next INTEGER, PRIMARY KEY (topic, number));
"""
REJOIN_S = 1.0


class Fenced(Exception):
    """Another member owns the partition now."""


def take_ownership(database: sqlite3.Connection, partition: TopicPartition) -> tuple[int, int | None]:
    """Become the owner of a partition. Returns the owner number, and the next offset to read, None before the first
    record."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT OR IGNORE INTO offsets VALUES (?, ?, 0, NULL)", partition)
        database.execute("UPDATE offsets SET owner = owner + 1 WHERE topic = ? AND number = ?", partition)
        row = database.execute("SELECT owner, next FROM offsets WHERE topic = ? AND number = ?", partition).fetchone()
    return int(row[0]), None if row[1] is None else int(row[1])


def apply(database: sqlite3.Connection, partition: TopicPartition, owner: int, records: list[ConsumerRecord]) -> None:
    """Write the counts of the records and the offset after them: all of it, or nothing. Raises Fenced."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        moved = database.execute(
            "UPDATE offsets SET next = ? WHERE topic = ? AND number = ? AND owner = ?",
            (records[-1].offset + 1, *partition, owner),
        )
        if moved.rowcount == 0:
            raise Fenced(f"another member owns {partition}")
        for record in records:
            database.execute(
                "INSERT INTO counts VALUES (?, 1) ON CONFLICT (value) DO UPDATE SET seen = seen + 1", (record.value,)
            )


async def count(bootstrap: str, topic: str, database: sqlite3.Connection, records_at_once: int) -> None:
    """Count until the program is stopped. Raises Fenced, OffsetOutOfRange."""
    config = ConsumerConfig(
        bootstrap_servers=bootstrap,
        group_id=f"counting-{topic}",
        group_instance_id="counter-1",  # a restart takes its partitions over at once (one name for each process)
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_poll_records=records_at_once,
    )
    owners: dict[TopicPartition, int] = {}
    async with Consumer(config) as consumer:

        def seek(partitions: tuple[TopicPartition, ...]) -> None:
            for partition in partitions:
                owners[partition], offset = take_ownership(database, partition)
                if offset is None:
                    consumer.seek_to_beginning(partition)
                else:
                    consumer.seek(partition, offset)

        consumer.subscribe([topic], on_assigned=seek)
        while True:
            for partition, records in (await consumer.getmany(timeout_ms=1_000)).items():
                apply(database, partition, owners[partition], records)


async def count_on(bootstrap: str, topic: str, database: sqlite3.Connection, records_at_once: int) -> None:
    """As `count`; a member that was fenced joins the group again."""
    while True:
        try:
            await count(bootstrap, topic, database, records_at_once)
        except Fenced as fenced:
            print(f"{fenced}: joins again")
            await asyncio.sleep(REJOIN_S)


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
        asyncio.run(count_on(given.bootstrap, given.topic, database, given.records_at_once))
    except KeyboardInterrupt:
        pass
    finally:
        database.close()


if __name__ == "__main__":
    main()
