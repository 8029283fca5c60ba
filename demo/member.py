"""One member of the group as a process: `python -m rota.demo.member CLIENT NAME BOOTSTRAP TOPIC GROUP`.

Prints a JSON line for each assignment and for each batch of records. A batch is reported before its offsets are
committed, so that a member that is killed in between leaves no record unreported: another member reads it again.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

SESSION_MS, HEARTBEAT_MS = 3_000, 300
BATCH_RECORDS = 40
PAUSE_S = 0.15  # the time that the work with a batch takes; also what keeps the demo on the screen

CLIENTS = {"rota": "rota.client", "confluent": "confluent_kafka", "kafka-python": "kafka", "aiokafka": "aiokafka"}
"""Client library and the package that it is imported as."""


def installed_clients() -> list[str]:
    """The client libraries that can be imported here."""
    return [client for client, package in CLIENTS.items() if find_spec(package) is not None]


def report(kind: str, **fields: object) -> None:
    print(json.dumps({"kind": kind, **fields}), flush=True)


def report_batch(offsets: dict[int, list[int]]) -> None:
    """The first and the last offset of each partition in the batch."""
    report("read", offsets={partition: [min(seen), max(seen)] for partition, seen in offsets.items()})


def report_assignment(partitions: Any) -> None:
    report("assigned", partitions=sorted(part.partition for part in partitions))


def stop_on_sigterm() -> list[bool]:
    """A list that becomes true when the process receives SIGTERM."""
    stopping: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    return stopping


async def rota(name: str, bootstrap: str, topic: str, group: str, stopping: list[bool]) -> None:
    from rota.client import CommitFailed, Consumer, ConsumerConfig, RebalanceInProgress

    config = ConsumerConfig(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=("range",),
    )
    async with Consumer(config) as consumer:
        consumer.subscribe([topic], on_assigned=report_assignment)
        while not stopping:
            batch = await consumer.getmany(BATCH_RECORDS, timeout_ms=int(PAUSE_S * 1000))
            if batch:
                report_batch({part.partition: [record.offset for record in records] for part, records in batch.items()})
                with suppress(CommitFailed, RebalanceInProgress):  # the next owner reads the batch again
                    await consumer.commit()
                await asyncio.sleep(PAUSE_S)


def confluent(name: str, bootstrap: str, topic: str, group: str, stopping: list[bool]) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe([topic], on_assign=lambda _, partitions: report_assignment(partitions))
    while not stopping:
        offsets: dict[int, list[int]] = {}
        for message in consumer.consume(BATCH_RECORDS, timeout=PAUSE_S):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                offsets.setdefault(partition, []).append(offset)
        if offsets:
            report_batch(offsets)
            consumer.commit(asynchronous=False)
            time.sleep(PAUSE_S)
    consumer.close()


def kafka_python(name: str, bootstrap: str, topic: str, group: str, stopping: list[bool]) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None: ...

        def on_partitions_assigned(self, assigned: Any) -> None:
            report_assignment(assigned)

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.subscribe([topic], listener=Listener())
    while not stopping:
        polled = consumer.poll(timeout_ms=int(PAUSE_S * 1000), max_records=BATCH_RECORDS)
        offsets = {part.partition: [record.offset for record in records] for part, records in polled.items()}
        if offsets:
            report_batch(offsets)
            consumer.commit()
            time.sleep(PAUSE_S)
    consumer.close()


async def aiokafka(name: str, bootstrap: str, topic: str, group: str, stopping: list[bool]) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None: ...

        async def on_partitions_assigned(self, assigned: Any) -> None:
            report_assignment(assigned)

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not stopping:
        polled = await consumer.getmany(timeout_ms=int(PAUSE_S * 1000), max_records=BATCH_RECORDS)
        offsets = {part.partition: [record.offset for record in records] for part, records in polled.items()}
        if offsets:
            report_batch(offsets)
            await consumer.commit()
            await asyncio.sleep(PAUSE_S)
    await consumer.stop()


def main() -> None:
    client, name, bootstrap, topic, group = sys.argv[1:]
    arguments = name, bootstrap, topic, group, stop_on_sigterm()
    match client:
        case "rota":
            asyncio.run(rota(*arguments))
        case "confluent":
            confluent(*arguments)
        case "kafka-python":
            kafka_python(*arguments)
        case "aiokafka":
            asyncio.run(aiokafka(*arguments))
        case _:
            sys.exit(f"no such client: {client}; known are {', '.join(CLIENTS)}")


if __name__ == "__main__":
    main()
