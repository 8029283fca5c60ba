"""One member of the group as its own process: `python -m tools.demo.member CLIENT BOOTSTRAP TOPIC GROUP`.

Prints a JSON line for what it owns and for what it has read and committed. Three clients, one group.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from typing import Any, NoReturn

SESSION_MS, HEARTBEAT_MS = 3_000, 300
BATCH_RECORDS = 100
PAUSE_S = 0.15  # real work takes time; it also keeps the demo on the screen


def say(kind: str, **fields: object) -> None:
    print(json.dumps({"kind": kind, **fields}), flush=True)


def spans(offsets: dict[int, list[int]]) -> dict[int, list[int]]:
    """[first, last] of what was read in each partition of one batch."""
    return {partition: [min(seen), max(seen)] for partition, seen in offsets.items()}


def stop_on_term() -> list[bool]:
    """A list that becomes true when the process is asked to stop."""
    stopping: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    return stopping


def confluent(bootstrap: str, topic: str, group: str) -> None:
    from confluent_kafka import Consumer

    stopping = stop_on_term()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "confluent",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe([topic], on_assign=lambda _, parts: say("owns", partitions=sorted(p.partition for p in parts)))
    while not stopping:
        seen: dict[int, list[int]] = {}
        for message in consumer.consume(BATCH_RECORDS, timeout=PAUSE_S):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                seen.setdefault(partition, []).append(offset)
        if seen:
            consumer.commit(asynchronous=False)
            say("read", spans=spans(seen))
            time.sleep(PAUSE_S)
    consumer.close()


def kafka_python(bootstrap: str, topic: str, group: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None: ...

        def on_partitions_assigned(self, assigned: Any) -> None:
            say("owns", partitions=sorted(part.partition for part in assigned))

    stopping = stop_on_term()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id="kafka-python",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.subscribe([topic], listener=Listener())
    while not stopping:
        polled = consumer.poll(timeout_ms=int(PAUSE_S * 1000), max_records=BATCH_RECORDS)
        seen = {part.partition: [record.offset for record in records] for part, records in polled.items()}
        if seen:
            consumer.commit()
            say("read", spans=spans(seen))
            time.sleep(PAUSE_S)
    consumer.close()


def aiokafka(bootstrap: str, topic: str, group: str) -> None:
    asyncio.run(_aiokafka(bootstrap, topic, group, stop_on_term()))


async def _aiokafka(bootstrap: str, topic: str, group: str, stopping: list[bool]) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None: ...

        async def on_partitions_assigned(self, assigned: Any) -> None:
            say("owns", partitions=sorted(part.partition for part in assigned))

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id="aiokafka",
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
        seen = {part.partition: [record.offset for record in records] for part, records in polled.items()}
        if seen:
            await consumer.commit()
            say("read", spans=spans(seen))
            await asyncio.sleep(PAUSE_S)
    await consumer.stop()


CLIENTS = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}


def main() -> NoReturn:
    client, bootstrap, topic, group = sys.argv[1:]
    CLIENTS[client](bootstrap, topic, group)
    sys.exit(0)


if __name__ == "__main__":
    main()
