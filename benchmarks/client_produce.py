"""What producing costs a client: `python -m benchmarks.client_produce HOST:PORT [WORD …]` prints records/s and CPU.

Rota's client, aiokafka and confluent-kafka, each in a process of its own, one after the other, each on a new topic with
the same settings: 100-byte records, batches of 64 KB, linger 5 ms, acks all, idempotent. The last rows send 10,000
keyed records a second with linger 0, paced by the clock: how late they were delivered, and what that cost.

CPU is of the client's process alone, with all its threads. Compare ratios, never the numbers of two machines.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from rota.client import Admin, AdminConfig, NewTopic

VALUE = b"v" * 100
RECORDS = 300_000
WARM_UP = 20_000
PARTITIONS = 6
KEYED_PER_S, KEYED_S, TICK_S = 10_000, 5, 0.005
ROUNDS = 3


@dataclass
class Figure:
    """Of one run. `late_ms`: the slowest hundredth of the paced records."""

    records_per_s: float
    cpu_us: float
    late_ms: float = 0.0


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measured(work: Callable[[int], Awaitable[None]]) -> Figure:
    await work(WARM_UP)
    began, cpu = time.perf_counter(), cpu_s()
    await work(RECORDS)
    spent = time.perf_counter() - began
    return Figure(RECORDS / spent, (cpu_s() - cpu) / RECORDS * 1e6)


async def paced(send: Callable[[bytes, Callable[[], None]], Awaitable[None]]) -> Figure:
    """`send(key, done)`: `done` is called when the record is delivered."""
    late: list[float] = []
    total = KEYED_PER_S * KEYED_S

    def delivered(when: float) -> None:
        late.append(time.perf_counter() - when)

    began, cpu = time.perf_counter(), cpu_s()
    sent = 0
    while sent < total:
        due = int((time.perf_counter() - began) * KEYED_PER_S)
        for number in range(sent, min(due, total)):
            when = began + number / KEYED_PER_S
            await send(b"key-%d" % (number % 1_000), partial(delivered, when))
        sent = max(sent, min(due, total))
        await asyncio.sleep(TICK_S)
    while len(late) < total:
        await asyncio.sleep(TICK_S)
    spent = time.perf_counter() - began
    late.sort()
    return Figure(total / spent, (cpu_s() - cpu) / total * 1e6, late[int(total * 0.99)] * 1_000)


async def rota(bootstrap: str, topic: str, keyed: bool) -> Figure:
    from rota.client.config import ProducerConfig
    from rota.client.producer.producer import Producer

    config = ProducerConfig(bootstrap_servers=bootstrap, linger_ms=0 if keyed else 5, batch_size=65_536)
    async with Producer(config) as producer:

        async def many(count: int) -> None:
            for _ in range(count):
                await producer.send(topic, VALUE)
            await producer.flush()

        async def send(key: bytes, done: Callable[[], None]) -> None:
            (await producer.send(topic, VALUE, key)).add_done_callback(lambda _: done())

        return await (paced(send) if keyed else measured(many))


async def aiokafka(bootstrap: str, topic: str, keyed: bool) -> Figure:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        linger_ms=0 if keyed else 5,
        max_batch_size=65_536,
        acks="all",
        enable_idempotence=True,
    )
    await producer.start()
    try:

        async def many(count: int) -> None:
            for _ in range(count):
                await producer.send(topic, VALUE)
            await producer.flush()

        async def send(key: bytes, done: Callable[[], None]) -> None:
            (await producer.send(topic, VALUE, key)).add_done_callback(lambda _: done())

        return await (paced(send) if keyed else measured(many))
    finally:
        await producer.stop()


async def confluent(bootstrap: str, topic: str, keyed: bool) -> Figure:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 0 if keyed else 5,
            "batch.size": 65_536,
            "acks": "all",
            "enable.idempotence": True,
            "queue.buffering.max.kbytes": 32_768,
        }
    )

    async def many(count: int) -> None:
        for _ in range(count):
            while True:
                try:
                    producer.produce(topic, VALUE)
                    break
                except BufferError:
                    producer.poll(0.01)
        producer.flush()

    async def send(key: bytes, done: Callable[[], None]) -> None:
        producer.produce(topic, VALUE, key, on_delivery=lambda *_: done())
        producer.poll(0)

    async def poll() -> None:
        while True:
            producer.poll(0)
            await asyncio.sleep(TICK_S)

    polling = asyncio.create_task(poll())
    try:
        return await (paced(send) if keyed else measured(many))
    finally:
        polling.cancel()


CLIENTS: dict[str, Any] = {"rota": rota, "aiokafka": aiokafka, "confluent-kafka": confluent}
RUNS = (
    ("rota", "asyncio"),
    ("aiokafka", "asyncio"),
    ("confluent-kafka", "asyncio"),
    ("rota", "uvloop"),
    ("aiokafka", "uvloop"),
)


def child(client: str, loop: str, bootstrap: str, topic: str, keyed: bool) -> None:
    """One run, in a process of its own: prints its figure."""
    if loop == "uvloop":
        import uvloop

        figure = uvloop.run(CLIENTS[client](bootstrap, topic, keyed))
    else:
        figure = asyncio.run(CLIENTS[client](bootstrap, topic, keyed))
    print(json.dumps(asdict(figure)))


async def create(bootstrap: str, topic: str) -> None:
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])


def run(client: str, loop: str, bootstrap: str, keyed: bool) -> Figure:
    topic = f"produce-{uuid4().hex[:8]}"
    asyncio.run(create(bootstrap, topic))
    command = [sys.executable, "-m", "benchmarks.client_produce", "--child", client, loop, bootstrap, topic]
    done = subprocess.run([*command, str(int(keyed))], capture_output=True, text=True, check=True)
    return Figure(**json.loads(done.stdout.splitlines()[-1]))


def best(client: str, loop: str, bootstrap: str, keyed: bool) -> Figure:
    """The run that cost least: others share the machine."""
    return min((run(client, loop, bootstrap, keyed) for _ in range(ROUNDS)), key=lambda figure: figure.cpu_us)


def main(bootstrap: str, words: list[str]) -> None:
    for title, keyed in (("linger 5 ms, as fast as it goes", False), ("10,000 keyed records/s, linger 0", True)):
        if words and not any(word in title for word in words):
            continue
        table = Table("client", "loop", "records/s", "CPU us a record", "99 % within", title=title)
        found = {(client, loop): best(client, loop, bootstrap, keyed) for client, loop in RUNS}
        for (client, loop), result in found.items():
            late = f"{result.late_ms:.1f} ms" if keyed else ""
            table.add_row(client, loop, f"{result.records_per_s:,.0f}", f"{result.cpu_us:.2f}", late)
        Console().print(table)
        for loop in ("asyncio", "uvloop"):
            ours, theirs = found["rota", loop], found["aiokafka", loop]
            speed, cost = ours.records_per_s / theirs.records_per_s, theirs.cpu_us / ours.cpu_us
            Console().print(f"rota to aiokafka on {loop}: {speed:.1f} x the records/s, 1/{cost:.1f} of the CPU")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--child":
        child(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5], sys.argv[6] == "1")
    else:
        main(sys.argv[1], sys.argv[2:])
