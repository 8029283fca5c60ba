"""kill -9 of the broker in the middle of transactions: each is seen whole or not at all, and none stays open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.chaos.daemon import Daemon
from tests.chaos.requests import create_topic

RECORDS, PATIENCE_S = 6, 30.0
STAGES = ("ongoing", "committing", "committed", "aborting")


def transactional(address: str) -> Producer:
    producer = Producer({"bootstrap.servers": address, "transactional.id": "tx", "log_level": 0})
    producer.init_transactions(PATIENCE_S)
    return producer


def begin(producer: Producer, number: int) -> None:
    producer.begin_transaction()
    for index in range(RECORDS):
        producer.produce("t", f"{number}".encode(), partition=index % 3)
    assert producer.flush(PATIENCE_S) == 0


def committed(address: str) -> dict[int, int]:
    """The number of visible records of each transaction; the reader comes to the end of every partition."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True, "log_level": 0}
    )
    consumer.assign([TopicPartition("t", index, 0) for index in range(3)])
    found: dict[int, int] = {}
    ends = set[int]()
    while len(ends) < 3:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "the last stable offset does not reach the end"
        if message.error():
            ends.add(message.partition())
        else:
            number = int(message.value())
            found[number] = found.get(number, 0) + 1
    consumer.close()
    return found


def end_quietly(producer: Producer, *, is_commit: bool) -> bool:
    """Return whether the end was acknowledged before the broker died."""
    try:
        (producer.commit_transaction if is_commit else producer.abort_transaction)(0.5)
    except KafkaException:
        return False
    return True


async def test_every_transaction_is_whole_after_kills_at_each_stage(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    async with Daemon(tmp_path / "data", transaction_state_log_num_partitions="4") as daemon:
        await create_topic(await daemon.line(), partitions=3)
        certain, possible = set[int](), set[int]()
        for number, stage in enumerate(STAGES * 2):
            producer = await asyncio.to_thread(transactional, daemon.address)
            await asyncio.to_thread(begin, producer, number)
            if stage == "committed":
                assert await asyncio.to_thread(end_quietly, producer, is_commit=True)
                certain.add(number)
            elif stage != "ongoing":
                end = asyncio.create_task(asyncio.to_thread(end_quietly, producer, is_commit=stage == "committing"))
                await asyncio.sleep(random.random() / 200)
                await daemon.crash()
                is_acknowledged = await end
                if stage == "committing":
                    (certain if is_acknowledged else possible).add(number)
                continue
            await daemon.crash()
        await asyncio.to_thread(transactional, daemon.address)  # ends what the last one left open
        found = await asyncio.to_thread(committed, daemon.address)
    assert set(found.values()) <= {RECORDS}, f"a part of a transaction is visible: {found}"
    assert certain <= set(found) <= certain | possible
