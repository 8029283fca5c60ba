"""What docs/GROUP_ACTIVITY.md shows: groups at work on a broker for some seconds, the job over them, and the plot.

    python -m tools.activity docs/group_activity.svg

`billing` has one slow consumer; a second and a third one help, until one goes away again. `audit` keeps up, is away
for a while, and comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from pathlib import Path

from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, NewTopic, Producer, ProducerConfig
from rota.coordinator.testing import running_broker
from rota.spark_connector.pipelines import group_activity, page

TOPIC = "orders"
WINDOW = "2 seconds"
RECORDS_PER_SECOND = 200
TURN_S = 0.1
# group, records it reads in a second, from and until which second
MEMBERS = (
    ("billing", 90, 0.0, 44.0),
    ("billing", 90, 12.0, 44.0),
    ("billing", 90, 20.0, 34.0),
    ("audit", 1000, 0.0, 18.0),
    ("audit", 1000, 28.0, 44.0),
)
SECONDS = 44.0


async def write(bootstrap: str) -> None:
    """Orders at a steady pace."""
    async with Producer(ProducerConfig(bootstrap_servers=bootstrap)) as producer:
        for turn in range(int(SECONDS / TURN_S)):
            for number in range(int(RECORDS_PER_SECOND * TURN_S)):
                await producer.send(TOPIC, b"order", f"{turn}-{number}".encode())
            await asyncio.sleep(TURN_S)


async def consume(bootstrap: str, group: str, per_second: int, start: float, stop: float) -> None:
    """One member, for its time."""
    await asyncio.sleep(start)
    config = ConsumerConfig(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", auto_commit_interval_ms=400
    )
    async with Consumer(config) as consumer:
        consumer.subscribe([TOPIC])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(stop - start):
                while True:
                    await consumer.getmany(max_records=int(per_second * TURN_S), timeout_ms=100)
                    await asyncio.sleep(TURN_S)


async def work(bootstrap: str) -> None:
    """Everybody together."""
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.create_topics([NewTopic(TOPIC, 6)])
    async with asyncio.TaskGroup() as all_:
        all_.create_task(write(bootstrap))
        for member in MEMBERS:
            all_.create_task(consume(bootstrap, *member))


def main() -> None:
    """The plot, into the file that is named."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "group_activity.svg")
    with running_broker() as bootstrap, tempfile.TemporaryDirectory() as folder:
        asyncio.run(work(bootstrap))
        output = f"{folder}/activity"
        group_activity.main(["--bootstrap-servers", bootstrap, "--output", output, "--window", WINDOW])
        target.write_text(page.render(output, title="Two groups on six partitions"), encoding="utf-8")


if __name__ == "__main__":
    main()
