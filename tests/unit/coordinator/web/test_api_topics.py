"""`/api/topics`, `/api/topic` and `/api/records` of a live broker."""

from __future__ import annotations

from typing import Any

import pytest
from tests.chaos.requests import NOW_MS, batch, create_topic, produce
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.web import broker_requests
from rota.coordinator.web.broker_requests import as_received
from rota.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from rota.protocol.records.record import Record, write_batch


async def filled(world: World, *values: bytes) -> None:
    await create_topic(world.kafka, "t", 2)
    for value in values:
        await world.kafka.send_request(produce(0, batch(value)), 9)


async def test_topics_are_shown_with_their_sizes(world: World) -> None:
    await filled(world, b"one")
    (topic,) = (await world.read("/api/topics"))["topics"]
    assert (topic["topic"], topic["partitions"], topic["size_bytes"]) == ("t", 2, len(batch(b"one")))


async def test_wb35_the_page_of_a_topic_asks_for_its_own_logs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(world, b"one")
    await create_topic(world.kafka, "other", 1)
    received: list[Any] = []

    def noted(request: Any, version: int) -> Any:
        received.append(request)
        return as_received(request, version)

    monkeypatch.setattr(broker_requests, "as_received", noted)
    assert (await world.read("/api/topic?topic=t"))["size_bytes"] == len(batch(b"one"))
    (requested,) = [request.topics for request in received if isinstance(request, DescribeLogDirsRequest)]
    assert requested == (DescribableLogDirTopic(topic="t", partitions=(0, 1)),)


async def test_a_topic_has_partitions_and_configs(world: World) -> None:
    await filled(world, b"one", b"two")
    topic = await world.read("/api/topic?topic=t")
    first, second = topic["partition_list"]
    assert (first["start_offset"], first["end_offset"], first["isr"]) == (0, 2, [0])
    assert second["end_offset"] == 0
    configs = {config["name"]: config for config in topic["configs"]}
    assert configs["cleanup.policy"]["value"] == "delete"
    assert configs["cleanup.policy"]["documentation"]


@pytest.mark.parametrize(
    ("query", "values", "next_offset"),
    [
        ("", ["0", "1", "2", "3", "4"], 5),
        ("&limit=2", ["3", "4"], 5),
        ("&offset=1&limit=2", ["1", "2"], 3),
        ("&offset=3", ["3", "4"], 5),
        ("&offset=99", [], 5),
        (f"&time_ms={NOW_MS}&limit=1", ["0"], 1),
        (f"&time_ms={NOW_MS + 10_000}", [], 5),
    ],
)
async def test_records_are_read_by_offset_and_by_time(
    world: World, query: str, values: list[str], next_offset: int
) -> None:
    await filled(world, *(str(number).encode() for number in range(5)))
    page = await world.read(f"/api/records?topic=t{query}")
    assert [record["value"]["text"] for record in page["records"]] == values
    assert (page["start_offset"], page["end_offset"], page["next_offset"]) == (0, 5, next_offset)


async def test_wb33_a_header_whose_name_is_not_utf_8_hides_no_page(world: World) -> None:
    await create_topic(world.kafka, "t", 1)
    record = Record(0, NOW_MS, None, b"v", (("a\udcff", b"x"),))
    await world.kafka.send_request(produce(0, write_batch([record])), 9)
    (shown,) = (await world.read("/api/records?topic=t"))["records"]
    assert [header["key"] for header in shown["headers"]] == ["a\ufffd"]
