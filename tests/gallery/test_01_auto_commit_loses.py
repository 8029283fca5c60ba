"""Automatic commits count a record as done when `poll` returns it: a crash while it is processed loses it.

Repair: `enable.auto.offset.store=false`, and store the offset when the record is processed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer
from tests.gallery.kit import confluent, poll, produce

from rota.testing import RunningBroker


def run(broker: RunningBroker, topic: str, process: Callable[[bytes], None], **settings: Any) -> None:
    consumer = Consumer(confluent(broker, topic, **settings))
    consumer.subscribe([topic])
    try:
        record = poll(consumer)
        process(record.value())
        if settings:
            consumer.store_offsets(record)
    except ConnectionError:
        pass  # the application ends, in order
    finally:
        consumer.close()


def fail(value: bytes) -> None:
    raise ConnectionError("the database is down")


def test_the_record_that_failed_is_lost(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "first", "second")
    processed: list[bytes] = []
    run(rota_broker, rota_topic, fail)
    run(rota_broker, rota_topic, processed.append)
    assert processed == [b"second"]


def test_repaired_it_is_processed_again(rota_broker: RunningBroker, rota_topic: str) -> None:
    produce(rota_broker, rota_topic, "first", "second")
    processed: list[bytes] = []
    run(rota_broker, rota_topic, fail, enable_auto_offset_store=False)
    run(rota_broker, rota_topic, processed.append, enable_auto_offset_store=False)
    assert processed == [b"first"]
