"""Clients of the tests of the kit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer

WAIT_S = 20
QUIET = {"log_level": 0}


def produce(bootstrap: str, topic: str, *values: str, client_id: str = "writer", **settings: Any) -> None:
    """Raises AssertionError when a record is not acknowledged."""
    failures: list[Any] = []
    own = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id, **QUIET, **own})
    for value in values:
        producer.produce(topic, value.encode(), on_delivery=lambda error, _: error and failures.append(error))
    assert producer.flush(WAIT_S) == 0
    assert not failures, f"not delivered: {failures}"


@contextmanager
def consumer(
    bootstrap: str, group: str, *topics: str, client_id: str = "reader", **settings: Any
) -> Iterator[Consumer]:
    """A member of a group without automatic commits."""
    config = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "session.timeout.ms": 6000, **QUIET}
    config["heartbeat.interval.ms"] = 100
    of_test = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": client_id}
    member = Consumer({**config, **of_test, **{name.replace("_", "."): value for name, value in settings.items()}})
    member.subscribe(list(topics))
    try:
        yield member
    finally:
        member.close()


@contextmanager
def epoch_member(
    bootstrap: str, group: str, *topics: str, client_id: str = "reader", revokes_in_poll: bool = False, **settings: Any
) -> Iterator[Consumer]:
    """A member with `group.protocol=consumer`; the broker sets its heartbeats and its session.

    Without a callback librdkafka revokes in a thread of its own; with one, in `poll`.
    """
    config = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "group.protocol": "consumer", **QUIET}
    of_test = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": client_id}
    member = Consumer({**config, **of_test, **{name.replace("_", "."): value for name, value in settings.items()}})
    callbacks = {"on_revoke": lambda _member, _partitions: None} if revokes_in_poll else {}
    member.subscribe(list(topics), **callbacks)
    try:
        yield member
    finally:
        member.close()


def take(member: Consumer, count: int) -> list[Any]:
    """The next records."""
    records: list[Any] = []
    while len(records) < count:
        record = member.poll(WAIT_S)
        assert record is not None, f"{len(records)} of {count} records came"
        if record.error() is None:
            records.append(record)
    return records
