"""Run by the Python of an environment that has Rota's wheel: a client sends a record to a broker and reads it, and
the command line lists the topics.

With --compiled it is an error when the record codecs are interpreted. cibuildwheel runs this for each wheel.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from rota.client import Consumer, ConsumerConfig, Producer, ProducerConfig
from rota.protocol.records import COMPILED
from rota.testing import running_broker


async def round_trip(brokers: str) -> bytes | None:
    """Return the value that was sent, as a member of a group reads it."""
    async with Producer(ProducerConfig(bootstrap_servers=brokers, compression_type="zstd")) as producer:
        await producer.send("t", b"hello")
    config = ConsumerConfig(bootstrap_servers=brokers, group_id="g", auto_offset_reset="earliest")
    async with Consumer(config) as consumer:
        consumer.subscribe(["t"])
        return (await consumer.getone()).value


if __name__ == "__main__":
    if "--compiled" in sys.argv and not COMPILED:
        sys.exit("the record codecs are not compiled")
    with running_broker() as running:
        value = asyncio.run(round_trip(running.bootstrap_servers))
        sys.stdout.write(f"{value!r}\n")  # in one piece: the broker logs there, too
        sys.stdout.flush()
        command = ["topics", "list", "--bootstrap-server", running.bootstrap_servers]
        subprocess.run([sys.executable, "-m", "rota", *command], check=True)
