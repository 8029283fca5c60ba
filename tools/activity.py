"""Makes the plot of docs/GROUP_ACTIVITY.md: two groups read a topic for 44 seconds, the job runs over what they did.

    python -m tools.activity docs/group_activity.svg

`billing` starts with one slow consumer; a second and a third join, and the third leaves. `audit` keeps up, stops for
ten seconds, and starts again.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from pathlib import Path

from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, NewTopic, Producer, ProducerConfig
from rota.spark_connector.pipelines import group_activity, report
from rota.testing import running_broker

TOPIC = "orders"
WINDOW = "2 seconds"
RECORDS_PER_SECOND = 200
STEP_S = 0.1
# group, records read in a second, second of the start, second of the end
MEMBERS = (
    ("billing", 90, 0.0, 44.0),
    ("billing", 90, 12.0, 44.0),
    ("billing", 90, 20.0, 34.0),
    ("audit", 1000, 0.0, 18.0),
    ("audit", 1000, 28.0, 44.0),
)
SECONDS = 44.0


async def write(bootstrap: str) -> None:
    """Send RECORDS_PER_SECOND records a second."""
    async with Producer(ProducerConfig(bootstrap_servers=bootstrap)) as producer:
        for step in range(int(SECONDS / STEP_S)):
            for number in range(int(RECORDS_PER_SECOND * STEP_S)):
                await producer.send(TOPIC, b"order", f"{step}-{number}".encode())
            await asyncio.sleep(STEP_S)


async def consume(bootstrap: str, group: str, per_second: int, start: float, stop: float) -> None:
    """Run one member from `start` to `stop` (seconds)."""
    await asyncio.sleep(start)
    config = ConsumerConfig(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", auto_commit_interval_ms=400
    )
    async with Consumer(config) as consumer:
        consumer.subscribe([TOPIC])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(stop - start):
                while True:
                    await consumer.getmany(max_records=int(per_second * STEP_S), timeout_ms=100)
                    await asyncio.sleep(STEP_S)


async def run_groups(bootstrap: str) -> None:
    """Run the producer and all members."""
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.create_topics([NewTopic(TOPIC, 6)])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write(bootstrap))
        for member in MEMBERS:
            tasks.create_task(consume(bootstrap, *member))


def main() -> None:
    """Write the plot to the file of the first argument."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "group_activity.svg")
    with running_broker() as running, tempfile.TemporaryDirectory() as folder:
        bootstrap = running.bootstrap_servers
        asyncio.run(run_groups(bootstrap))
        output = f"{folder}/activity"
        group_activity.main(["--bootstrap-servers", bootstrap, "--output", output, "--window", WINDOW])
        target.write_text(report.svg(output, title="Two groups on six partitions"), encoding="utf-8")


if __name__ == "__main__":
    main()
