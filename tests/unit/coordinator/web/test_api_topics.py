"""`/api/topics`, `/api/topic` and `/api/records` of a live broker."""

from __future__ import annotations

import pytest
from tests.chaos.requests import NOW_MS, batch, create_topic, produce
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.web.api_topics import VALUE_BYTES_MAX, decode_page, shown_bytes
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import Record, write_batch


async def filled(world: World, *values: bytes) -> None:
    await create_topic(world.kafka, "t", 2)
    for value in values:
        await world.kafka.send_request(produce(0, batch(value)), 9)


async def test_topics_are_shown_with_their_sizes(world: World) -> None:
    await filled(world, b"one")
    (topic,) = (await world.read("/api/topics"))["topics"]
    assert (topic["topic"], topic["partitions"], topic["size_bytes"]) == ("t", 2, len(batch(b"one")))


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


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        (b"text <b>", "text", "text <b>"),
        (b'{"a": 1}', "json", '{"a": 1}'),
        (b"[" * 5_000, "text", "[" * 5_000),
        (b"\xff\x00", "base64", "/wA="),
        (b"", "text", ""),
    ],
)
def test_bytes_are_shown_in_the_format_that_fits(data: bytes, form: str, text: str) -> None:
    assert shown_bytes(data) == {"size_bytes": len(data), "is_cut": False, "format": form, "text": text}


def test_a_tombstone_is_null_and_a_long_value_is_cut_between_characters() -> None:
    assert shown_bytes(None) is None
    shown = shown_bytes("é".encode() * VALUE_BYTES_MAX + b"x")
    assert shown is not None
    assert (shown["is_cut"], len(shown["text"].encode())) == (True, VALUE_BYTES_MAX)
    shown = shown_bytes(b"x" + "é".encode() * VALUE_BYTES_MAX)
    assert shown is not None
    assert (shown["format"], len(shown["text"].encode())) == ("text", VALUE_BYTES_MAX - 1)


def test_a_page_that_ends_inside_a_batch_continues_there() -> None:
    data = write_batch([Record(at, NOW_MS, None, b"v", ()) for at in range(4)])
    found, next_offset = decode_page(data, 1, 2)
    assert ([record.offset for record in found], next_offset) == ([1, 2], 3)


def test_damaged_records_are_an_error() -> None:
    damaged = bytearray(batch(b"one"))
    damaged[16] = 9
    with pytest.raises(CorruptBatch):
        decode_page(bytes(damaged), 0, 10)
