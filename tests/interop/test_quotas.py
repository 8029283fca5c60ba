"""Quotas, seen by librdkafka, Java's tools and raw connections: each test has a client id or an address of its own.

Where Kafka has the same quotas of the same rates, the tests run against Apache Kafka as well.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.interop.differential.wire import Wire
from tests.interop.java_kit import needs_java, run_java, run_java_failing
from tests.interop.kit import PATIENCE_S, create_topic, unique, until

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from rota.protocol.messages.api_versions import ApiVersionsRequest
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from rota.protocol.messages.metadata import MetadataRequest

PEER = os.environ.get("ROTA_PEER")
BURST_WINDOWS = 10  # quota.window.num is 11
VALUE_BYTES = 60_000
TOPICS = "org.apache.kafka.tools.TopicCommand"
BURST_S = 11  # controller.quota.window.num windows of a second


@pytest.fixture(
    params=["rota", pytest.param("kafka", marks=pytest.mark.skipif(PEER is None, reason="ROTA_PEER names no Kafka"))]
)
def address(request: pytest.FixtureRequest, bootstrap: str) -> str:
    """HOST:PORT of Rota, and of Apache Kafka."""
    return bootstrap if request.param == "rota" else str(PEER)


def limit(address: str, entity_type: str, name: str, **quotas: float | None) -> None:
    """Set quotas of an entity; None removes one. Returns when the broker shows them: Kafka's learns of them later."""
    wire = Wire(address, "admin")
    ops = tuple(OpData(key=key, value=rate or 0.0, remove=rate is None) for key, rate in quotas.items())
    entity = (EntityData(entity_type=entity_type, entity_name=name),)
    response = wire.send_request(AlterClientQuotasRequest(entries=(EntryData(entity=entity, ops=ops),)), 1)
    assert [each.error_code for each in response.entries] == [0]
    exactly = ComponentData(entity_type=entity_type, match_type=0, match=name)

    def is_shown() -> bool:
        entries = wire.send_request(DescribeClientQuotasRequest(components=(exactly,), strict=True), 1).entries
        shown = {value.key: value.value for entry in entries for value in entry.values}
        return all(shown.get(key) == rate for key, rate in quotas.items())

    until(is_shown, f"the quotas of {name}")
    wire.close()


@pytest.fixture
def client_id(bootstrap: str) -> str:
    """A client id whose rates allow a record and a half in all windows."""
    name, rate = unique("limited"), 1.5 * VALUE_BYTES / BURST_WINDOWS
    limit(bootstrap, "client-id", name, producer_byte_rate=rate, consumer_byte_rate=rate)
    return name


def test_a_producer_above_its_quota_is_told_the_throttle_time(bootstrap: str, client_id: str) -> None:
    topic, throttle_s = create_topic(bootstrap, 1), []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "linger.ms": 0,
            "throttle_cb": lambda event: throttle_s.append(event.throttle_time),
        }
    )
    for _ in range(2):
        producer.produce(topic, b"x" * VALUE_BYTES)
        assert producer.flush(PATIENCE_S) == 0
    until(lambda: (producer.poll(0), throttle_s)[1], "the throttle time")
    over_s = 2 * VALUE_BYTES / (1.5 * VALUE_BYTES / BURST_WINDOWS) - BURST_WINDOWS
    assert over_s - 1.1 < throttle_s[0] < over_s + 0.2


def test_a_consumer_above_its_quota_is_told_the_throttle_time(bootstrap: str, client_id: str) -> None:
    topic, throttle_s = create_topic(bootstrap, 1), []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for _ in range(2):
        producer.produce(topic, b"x" * VALUE_BYTES)
        assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": unique("group"),
            "auto.offset.reset": "earliest",
            "throttle_cb": lambda event: throttle_s.append(event.throttle_time),
        }
    )
    consumer.subscribe([topic])
    records = []

    def is_throttled() -> bool:
        record = consumer.poll(0.1)
        if record is not None and not record.error():
            records.append(record)
        return bool(throttle_s)

    until(is_throttled, "the throttle time")
    assert len(records) == 1
    consumer.close()


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
    return CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False)


def test_mutations_above_the_rate_of_a_client_id_are_refused(address: str) -> None:
    """KIP-599: a burst is accepted as a whole; what follows is refused, and throttled in versions without the error."""
    name = unique("limited")
    limit(address, "client-id", name, controller_mutation_rate=1)
    wire = Wire(address, name)
    found = []
    for version in (7, 7, 5):
        answer = wire.send_request(creation(unique("mutated"), BURST_S + 1), version)
        found.append((answer.topics[0].error_code, answer.throttle_time_ms > 0))
    wire.close()
    assert found == [(0, False), (ErrorCode.THROTTLING_QUOTA_EXCEEDED, True), (0, True)]


@pytest.mark.java
@needs_java[1]
def test_kafka_topics_says_that_the_rate_is_exceeded(address: str, tmp_path: Path) -> None:
    name, settings = unique("limited"), tmp_path / "client.properties"
    settings.write_text(f"client.id={name}\n")
    limit(address, "client-id", name, controller_mutation_rate=0.1)
    create = ("--bootstrap-server", address, "--command-config", str(settings), "--create", "--partitions", "5")
    run_java(TOPICS, *create, "--topic", unique("mutated"))
    assert "quota has been exceeded" in run_java_failing(TOPICS, *create, "--topic", unique("mutated"))


def test_requests_above_the_percentage_of_a_client_id_mute_its_connection(address: str) -> None:
    name = unique("limited")
    limit(address, "client-id", name, request_percentage=0.001)
    wire = Wire(address, name)
    request = MetadataRequest(topics=None)

    def throttle_ms() -> int:
        return int(wire.send_request(request, 8).throttle_time_ms)

    throttled_ms = until(throttle_ms, "a throttle time")
    began = time.monotonic()
    wire.send_request(request, 8)  # KIP-219: it is served when the time is over
    assert time.monotonic() - began > 0.9 * throttled_ms / 1_000
    wire.close()


def test_connections_above_the_rate_of_an_address_are_held_and_closed(address: str) -> None:
    """KIP-612, from an address of the loopback that no other test has."""
    host, rate = f"127.0.7.{os.getpid() % 200 + 1}", 5
    limit(address, "ip", host, connection_creation_rate=rate)
    wires = []
    try:
        began = time.monotonic()  # a slow machine adds to what is allowed while the connections are made
        while len(wires) < rate * (BURST_WINDOWS + 5 + time.monotonic() - began):
            wires.append(wire := Wire(address, "test", host))
            wire.send(ApiVersionsRequest(), 0)
        served = [wire for wire in wires if is_served(wire)]
        assert rate * BURST_WINDOWS <= len(served) < len(wires)
        assert served == wires[: len(served)]
    finally:
        for wire in wires:
            wire.close()
        limit(address, "ip", host, connection_creation_rate=None)


def is_served(wire: Wire) -> bool:
    try:
        return wire.answer(PATIENCE_S) is not None
    except ConnectionError:
        return False
