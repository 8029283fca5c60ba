"""Consuming, side by side: Rota's client, aiokafka and confluent-kafka on the same topic of the same broker.

`python -m benchmarks.client_consume HOST:PORT [--records N] [--rounds N]`: records of 100 bytes and of 1 KB in batches
of 16 KB (a Java producer's), four partitions; each consumer in a process of its own, one after the other, round after
round; the best round counts, since everything else on the machine can only make it slower. Each reads all there is,
up to 10,000 records a time, and looks at every value. "cpu" is the process's own time for one record, all threads.
"rota" fetches assigned partitions and no more, "rota group" is the whole consumer, with a group and automatic commits.

librdkafka stops fetching for a second when it has 100,000 records waiting: "tuned" is without that pause.

Goals: twice aiokafka, 0.8 of confluent-kafka.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.table import Table

PARTITIONS = 4
POLL_RECORDS = 10_000
SIZES = {100: 1_000_000, 1000: 300_000}
CONSUMERS = (
    "rota",
    "rota uvloop",
    "rota group",
    "aiokafka",
    "aiokafka uvloop",
    "confluent-kafka",
    "confluent-kafka tuned",
)
BATCH_BYTES = 16_384
TUNED: dict[str, object] = {"fetch.queue.backoff.ms": 1, "queued.min.messages": 1_000_000}


def main() -> None:
    arguments = options()
    if arguments.worker:
        print(json.dumps(work(arguments.worker, arguments.address, arguments.topic, arguments.records)))
        return
    console = Console()
    for size, records in SIZES.items():
        records = arguments.records or records
        topic = filled(arguments.address, size, records)
        rounds = [
            {name: run(name, arguments.address, topic, records) for name in CONSUMERS} for _ in range(arguments.rounds)
        ]
        console.print(rows(size, records, rounds))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.client_consume", description=__doc__)
    parser.add_argument("address", help="HOST:PORT of a broker")
    parser.add_argument("--records", type=int, default=0, help="of each size; default 1,000,000 and 300,000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", choices=CONSUMERS, help=argparse.SUPPRESS)
    parser.add_argument("--topic", help=argparse.SUPPRESS)
    return parser.parse_args()


def run(name: str, address: str, topic: str, records: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.client_consume", address, "--worker", name, "--topic", topic]
    done = subprocess.run([*command, "--records", str(records)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name}: {done.stderr}"
    found: dict[str, float] = json.loads(done.stdout)
    return found


def rows(size: int, records: int, rounds: list[dict[str, dict[str, float]]]) -> Table:
    wall = {name: min(one[name]["wall_s"] for one in rounds) for name in CONSUMERS}
    cpu = {name: min(one[name]["cpu_s"] for one in rounds) for name in CONSUMERS}
    table = Table("consumer", "records/s", "of aiokafka", "of confluent", "cpu us/record", title=f"{size} bytes")
    for name in CONSUMERS:
        table.add_row(
            name,
            f"{records / wall[name]:,.0f}",
            f"{wall['aiokafka'] / wall[name]:.2f}",
            f"{wall['confluent-kafka'] / wall[name]:.2f}",
            f"{cpu[name] / records * 1e6:.3f}",
        )
    return table


def filled(address: str, size: int, records: int) -> str:
    """A topic with so many records of that size, spread evenly."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    topic = f"consume-{size}-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    settings = {"batch.size": BATCH_BYTES, "linger.ms": 20, "queue.buffering.max.messages": 200_000}
    producer = Producer({"bootstrap.servers": address, **settings})
    value = bytes(range(256)) * 4
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value[:size], partition=number * PARTITIONS // records)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0
    return topic


# ---- the consumers, each in a process of its own


def work(name: str, address: str, topic: str, records: int) -> dict[str, float]:
    kind, _, how = name.partition(" ")
    if kind == "confluent-kafka":
        return timed(lambda: confluent(address, topic, records, TUNED if how == "tuned" else {}))
    read: Callable[..., Awaitable[None]] = aiokafka if kind == "aiokafka" else rota_group if how == "group" else rota
    if how == "uvloop":
        import uvloop

        return timed(lambda: uvloop.run(read(address, topic, records)))  # type: ignore[arg-type]
    return timed(lambda: asyncio.run(read(address, topic, records)))  # type: ignore[arg-type]


_began: dict[str, float] = {}


def timed(call: Callable[[], None]) -> dict[str, float]:
    """Since the consumer is there (`begin`): imports and connecting are paid once, whatever is read."""
    call()
    wall, cpu = time.perf_counter(), time.process_time()
    return {"wall_s": wall - _began["wall"], "cpu_s": cpu - _began["cpu"]}


def begin() -> None:
    _began.update(wall=time.perf_counter(), cpu=time.process_time())


def looked_at(records: Iterable[Any]) -> int:
    count = 0
    for record in records:
        if record.value:
            count += 1
    return count


async def rota(address: str, topic: str, records: int) -> None:
    """Fetching alone: what a consumer can be at best."""
    from rota.client.config import ConsumerConfig
    from rota.client.consumer.fetcher import Fetcher
    from rota.client.consumer.positions import Positions
    from rota.client.network.cluster import Cluster
    from rota.client.types import TopicPartition

    config = ConsumerConfig(bootstrap_servers=address)
    cluster = Cluster(config)
    cluster.set_topics([topic])
    await cluster.start()
    begin()
    positions = Positions()
    positions.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
    for partition in positions.assigned:
        positions.seek(partition, 0)
    fetcher = Fetcher(cluster, config, positions)
    fetcher.start()
    while records > 0:
        await fetcher.wait()
        for found in fetcher.take(POLL_RECORDS).values():
            records -= looked_at(found)
    await fetcher.close()
    await cluster.close()


async def rota_group(address: str, topic: str, records: int) -> None:
    """The whole consumer: a group, automatic commits."""
    from rota.client import Consumer, ConsumerConfig

    config = ConsumerConfig(bootstrap_servers=address, group_id=f"bench-{uuid4().hex}", auto_offset_reset="earliest")
    async with Consumer(config) as consumer:
        consumer.subscribe([topic])
        first = await consumer.getmany(1, timeout_ms=30_000)
        begin()
        records -= sum(map(len, first.values()))
        while records > 0:
            for found in (await consumer.getmany(POLL_RECORDS, timeout_ms=1_000)).values():
                records -= looked_at(found)


async def aiokafka(address: str, topic: str, records: int) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    begin()
    consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
    while records > 0:
        for found in (await consumer.getmany(max_records=POLL_RECORDS, timeout_ms=1000)).values():
            records -= looked_at(found)
    await consumer.stop()


def confluent(address: str, topic: str, records: int, more: dict[str, object]) -> None:
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": address, "group.id": f"bench-{uuid4().hex}", "enable.auto.commit": False}
    consumer = Consumer(settings | more)
    consumer.list_topics(topic, timeout=10)
    begin()
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    while records > 0:
        for message in consumer.consume(min(POLL_RECORDS, records), timeout=1.0):  # it waits until so many are there
            if message.value():
                records -= 1
    consumer.close()


if __name__ == "__main__":
    main()
