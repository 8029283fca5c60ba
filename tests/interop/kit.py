"""Helpers of all interop tests: unique names, waiting with a deadline, topics and records.

No test waits by a plain sleep: `until` checks a condition repeatedly, and reports the last state at its deadline.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

T = TypeVar("T")

PATIENCE_S = 20.0  # far above what anything takes; a deadline, not a delay
LOOK_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class Record:
    """One consumed record, the same from every client."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def unique(what: str) -> str:
    """A name of its own for a topic, group or client, whatever runs beside."""
    return f"{what}-{uuid.uuid4().hex[:10]}"


def until(look: Callable[[], T], what: str, *, seconds: float = PATIENCE_S) -> T:
    """The first true thing that `look` returns; AssertionError with `what` and the last look after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}; last seen: {seen!r}")
        time.sleep(LOOK_EVERY_S)


def create_topic(
    bootstrap: str, partitions: int, *, name: str | None = None, config: dict[str, str] | None = None
) -> str:
    """A new topic whose partitions all have a leader that answers. Returns its name."""
    name = name or unique("topic")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1, config=config or {})])[name].result(PATIENCE_S)

    def led() -> bool:
        topic = admin.list_topics(name, timeout=PATIENCE_S).topics[name]
        return len(topic.partitions) == partitions and all(p.leader >= 0 for p in topic.partitions.values())

    until(led, f"leaders of {name}")
    return name


# Kafka answers NOT_LEADER_OR_FOLLOWER for a moment after a topic's creation, and takes any first sequence number of an
# idempotent producer that it does not know: a second batch in flight could come before the first
IN_ORDER: Final = {"linger.ms": 0, "max.in.flight": 1}


def produce(bootstrap: str, topic: str, values: Iterable[bytes], **settings: object) -> None:
    """One record for each value, to partition `i mod partitions`, all acknowledged. Key = value."""
    producer = Producer({"bootstrap.servers": bootstrap, **IN_ORDER, **settings})
    count = len(producer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions)
    for index, value in enumerate(values):
        producer.produce(topic, value, value, partition=index % count)
    assert producer.flush(PATIENCE_S) == 0


def produce_to(bootstrap: str, topic: str, partition: int, values: Iterable[bytes], **settings: object) -> None:
    """All values to one partition, all acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, **IN_ORDER, **settings})
    for value in values:
        producer.produce(topic, value, value, partition=partition)
    assert producer.flush(PATIENCE_S) == 0
