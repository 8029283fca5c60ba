"""The story: produce a text, read it as a group of 1, then 3, lose one to a crash, restart the broker, count."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.live import Live

from tools.demo.processes import Broker, Member, join
from tools.demo.text import lines
from tools.demo.view import screen

TOPIC, GROUP, PARTITIONS = "lines", "readers", 6
PATIENCE_S = 25.0
POLL_S = 0.1
READ_BEFORE_CRASH = 300


class Demo:
    """One run."""

    def __init__(self, folder: Path, live: Live) -> None:
        self.story: list[dict[str, Any]] = []
        self.broker = Broker(folder, self.story)
        self.live, self.chapter = live, ""
        self.members: list[Member] = []
        self.text = lines()
        self.committed: dict[int, int] = {}
        self.ends: dict[int, int] = {}

    def run(self) -> None:
        self.tell("Starting the broker on its embedded store")
        began = time.monotonic()
        self.broker.start()
        self.tell(f"The broker listens on {self.broker.address} after {(time.monotonic() - began) * 1000:.0f} ms")
        self.produce()
        self.add("confluent")
        self.until("One member reads everything", lambda: len(self.members[0].owns) == PARTITIONS)
        self.add("kafka-python", "aiokafka")
        self.until("Two more members join: the partitions are shared", self.all_three_read)
        self.members[1].stop(signal.SIGKILL, "killed (SIGKILL)")
        self.until("One member crashed: its session runs out, the others take over", lambda: self.shared(2))
        self.until("Reading on to the end", lambda: self.lag() == 0)
        self.restart()

    def produce(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.address})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": self.broker.address, "compression.type": "lz4", "linger.ms": 5})
        for number, line in enumerate(self.text):
            producer.produce(TOPIC, key=str(number), value=line)
            producer.poll(0)
        left = producer.flush(PATIENCE_S)
        assert left == 0, f"{left} lines were not acknowledged"
        self.tell(f"{len(self.text):,} lines of text are in {PARTITIONS} partitions")

    def add(self, *clients: str) -> None:
        self.members += [join(client, self.broker.address, TOPIC, GROUP) for client in clients]

    def restart(self) -> None:
        """Members leave in order, the broker is killed; what they committed must be there when it is back."""
        for member in self.members:
            if member.fate == "consuming":
                member.stop(signal.SIGTERM, "left in order")
        before = self.offsets()
        self.tell("Killing the broker (SIGKILL) and starting it again on the same data")
        self.broker.stop(signal.SIGKILL)
        self.broker.start()
        after = self.offsets()
        assert after == before, f"committed offsets changed over a restart: {before} -> {after}"
        self.tell("The broker is back; every committed offset is there")

    # ---- looking

    def shared(self, count: int) -> bool:
        owners = [member.owns for member in self.members if member.owns]
        return len(owners) == count and sorted(chain(*owners)) == list(range(PARTITIONS))

    def all_three_read(self) -> bool:
        return self.shared(3) and all(member.records_read >= READ_BEFORE_CRASH for member in self.members)

    def lag(self) -> int:
        return sum(end - max(self.committed.get(part, 0), 0) for part, end in self.ends.items())

    def offsets(self) -> dict[int, int]:
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": GROUP})
        try:
            parts = [TopicPartition(TOPIC, part) for part in range(PARTITIONS)]
            for part in parts:
                self.ends[part.partition] = consumer.get_watermark_offsets(part, timeout=PATIENCE_S)[1]
            self.committed = {part.partition: part.offset for part in consumer.committed(parts, timeout=PATIENCE_S)}
        finally:
            consumer.close()
        return self.committed

    def until(self, chapter: str, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        self.tell(chapter)
        while not reached():
            if time.monotonic() > deadline:
                raise SystemExit(f"after {PATIENCE_S:.0f} s not reached: {chapter}")
            time.sleep(POLL_S)
            self.offsets()
            self.show()

    def tell(self, chapter: str) -> None:
        self.chapter = chapter
        self.show()

    def show(self) -> None:
        self.live.update(screen(self.chapter, self.members, self.committed, self.ends, self.story), refresh=True)

    # ---- counting

    def missing(self) -> int:
        """Lines that no member read."""
        seen: dict[int, set[int]] = {part: set() for part in range(PARTITIONS)}
        for member in self.members:
            for part, first, last in member.spans:
                seen[part].update(range(first, last + 1))
        return sum(end - len(seen[part]) for part, end in self.ends.items())

    def close(self) -> None:
        for member in self.members:
            if member.process.poll() is None:
                member.process.kill()
                member.process.wait()
        if self.broker.process is not None and self.broker.process.poll() is None:
            self.broker.stop()


def main() -> None:
    console = Console()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rota-demo-") as folder, Live(console=console, auto_refresh=False) as live:
        demo = Demo(Path(folder), live)
        try:
            demo.run()
        finally:
            demo.close()
    read = sum(member.records_read for member in demo.members)
    missing = demo.missing()
    if missing:
        raise SystemExit(f"FAILED: {missing} of {len(demo.text)} lines were read by nobody")
    console.print(
        f"[bold green]Every one of {len(demo.text):,} lines was consumed at least once[/] ({read:,} reads by "
        f"{len(demo.members)} members), and every committed offset survived the crash of the broker. "
        f"{time.monotonic() - began:.0f} s."
    )


if __name__ == "__main__":
    main()
