"""Unmodified clients push their metrics to the broker (KIP-714)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from confluent_kafka import Producer
from tests.cluster.brokers import Brokers, until
from tests.interop.java_kit import needs_java, run_java

from rota.coordinator.broker import Broker
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.observe.client_telemetry import ClientInstance
from rota.coordinator.observe.otlp import decode

RUNS_MAX = 3  # Java's client leaves out its last push when another one is under way at that moment


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    async with Brokers(1) as item:
        yield item


async def subscribe(broker: Broker, **configs: str) -> None:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    assert await broker.topics.configs.update(ConfigKind.CLIENT_METRICS, "all", lambda _: named) is None


def instances(broker: Broker) -> list[ClientInstance]:
    return list(broker.node.telemetry.instances().values())


async def test_librdkafka_pushes_the_metrics_of_the_subscription(brokers: Brokers) -> None:
    broker = brokers.by_id[1]
    await subscribe(broker, metrics="org.apache.kafka.producer.", interval_ms="100", match="client_id=app-.*")
    pushing, silent = (
        Producer({"bootstrap.servers": brokers.bootstrap(), "client.id": name}) for name in ("app-1", "other")
    )

    def pushed() -> bool:
        pushing.poll(0)
        silent.poll(0)
        return broker.node.telemetry.pushes > 1 and len(instances(broker)) == 2

    await until(pushed, "two pushes")
    (app,) = (each for each in instances(broker) if each.pushes)
    assert app.labels["client_id"] == "app-1"
    assert "librdkafka" in app.labels["client_software_name"] or "confluent" in app.labels["client_software_name"]
    points, why = decode(app)
    assert why == ""
    assert {point["metric"].startswith("org.apache.kafka.producer.") for point in points} == {True}
    await asyncio.to_thread(pushing.flush, 5)


@pytest.mark.java
@needs_java[1]
async def test_a_java_producer_pushes_its_last_metrics_when_it_ends(brokers: Brokers) -> None:
    broker = brokers.by_id[1]
    await broker.topics.create("t")
    await subscribe(broker, metrics="*", interval_ms="100")
    arguments = ["--topic", "t", "--num-records", "2000", "--record-size", "10", "--throughput", "1000"]
    tool = "org.apache.kafka.tools.ProducerPerformance"
    arguments += ["--producer-props", f"bootstrap.servers={brokers.bootstrap()}"]
    for _ in range(RUNS_MAX):
        await asyncio.to_thread(run_java, tool, *arguments)
        instance = max(instances(broker), key=lambda each: each.pushed_at_ms)
        if instance.is_terminating and instance.pushes > 1:  # on a busy machine the program ends before its first push
            break
    assert instance.pushes > 1
    assert instance.is_terminating
    points, why = decode(instance)
    assert why == ""
    assert any(point["metric"].startswith("org.apache.kafka.producer") for point in points)
