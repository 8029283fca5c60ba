"""The console's actions on a live broker."""

from __future__ import annotations

from typing import Any

import pytest
from tests.chaos.requests import batch, commit, committed, create_topic, produce
from tests.unit.coordinator.web.conftest import World, members

from rota.protocol.messages.find_coordinator import FindCoordinatorRequest

CREATE, DELETE = "/api/actions/create-topic", "/api/actions/delete-group"
REMOVE, RESET = "/api/actions/remove-member", "/api/actions/reset-offsets"


async def with_offsets(world: World) -> None:
    await create_topic(world.kafka, "t", 2)
    await world.kafka.send_request(produce(0, batch(b"0", b"1", b"2", b"3")), 9)
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    await world.kafka.send_request(commit("g", 0, 2), 7)


async def test_a_topic_is_created_with_partitions_and_configs(world: World) -> None:
    body = {"topic": "new", "partitions": 3, "configs": {"retention.ms": "1000"}}
    assert await world.act(CREATE, body) == {"topic": "new", "partitions": 3}
    topic = await world.read("/api/topic?topic=new")
    assert {config["name"]: config["value"] for config in topic["configs"]}["retention.ms"] == "1000"
    assert "exists" in (await world.act(CREATE, body, 409))["error"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"topic": ""},
        {"topic": 7},
        {"topic": "a b"},
        {"topic": "t", "partitions": 0},
        {"topic": "t", "partitions": "3"},
        {"topic": "t", "partitions": True},
        {"topic": "t", "partitions": 1 << 40},
        {"topic": "t", "configs": {"retention.ms": 5}},
        {"topic": "t", "configs": {"no.such.config": "5"}},
    ],
)
async def test_a_topic_that_kafka_would_refuse_is_refused(world: World, body: dict[str, Any]) -> None:
    assert (await world.act(CREATE, body, 400))["error"]
    assert (await world.read("/api/topics"))["topics"] == []


@pytest.mark.parametrize("text", ["lone \ud800 surrogate", "x" * 40_000])
async def test_values_that_the_protocol_cannot_encode_are_refused(world: World, text: str) -> None:
    await with_offsets(world)
    loads = world.broker.groups.loads_count
    await world.act(RESET, {"group": text, "topic": "t", "to": "latest", "dry_run": False}, 400)
    await world.act(DELETE, {"group": text}, 400)
    await world.act(REMOVE, {"group": text, "member_id": "m"}, 400)
    await world.act(CREATE, {"topic": "u", "configs": {"leader.replication.throttled.replicas": text}}, 400)
    assert world.broker.groups.loads_count == loads
    assert [topic["topic"] for topic in (await world.read("/api/topics"))["topics"] if not topic["is_internal"]] == [
        "t"
    ]


async def test_a_group_is_deleted_when_it_has_no_members(world: World) -> None:
    await with_offsets(world)
    assert await world.act(DELETE, {"group": "g"}) == {"group": "g"}
    assert (await world.read("/api/groups"))["groups"] == []
    await world.act(DELETE, {"group": "g"}, 404)
    async with members(world, "g", 1):
        assert "NON_EMPTY_GROUP" in (await world.act(DELETE, {"group": "g"}, 409))["error"]


async def test_a_member_is_removed(world: World) -> None:
    await with_offsets(world)
    async with members(world, "g", 2):
        first, _ = (await world.read("/api/group?group=g"))["members"]
        await world.act(REMOVE, {"group": "g", "member_id": first["member_id"]})
        left = (await world.read("/api/group?group=g"))["members"]
        assert first["member_id"] not in [member["member_id"] for member in left]
        await world.act(REMOVE, {"group": "g", "member_id": "nobody"}, 404)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ({"to": "earliest"}, {0: 0, 1: 0}),
        ({"to": "latest"}, {0: 4, 1: 0}),
        ({"to": "offset", "offset": 3}, {0: 3, 1: 0}),
        ({"to": "offset", "offset": -7, "partitions": [0]}, {0: 0}),
        ({"to": "shift", "by": 1}, {0: 3}),
        ({"to": "shift", "by": -99}, {0: 0}),
        ({"to": "time", "time_ms": 0, "partitions": [0]}, {0: 0}),
    ],
)
async def test_offsets_are_shown_before_they_are_reset(
    world: World, body: dict[str, Any], after: dict[int, int]
) -> None:
    await with_offsets(world)
    body = {"group": "g", "topic": "t", **body}
    shown = await world.act(RESET, body)
    assert shown["dry_run"] is True
    assert {change["partition"]: change["after"] for change in shown["changes"]} == after
    assert {change["partition"]: change["before"] for change in shown["changes"]}[0] == 2
    assert (await committed(world.kafka, "g", 0))[0] == 2
    done = await world.act(RESET, {**body, "dry_run": False})
    assert done == {**shown, "dry_run": False}
    assert (await committed(world.kafka, "g", 0))[0] == after[0]


async def test_offsets_of_a_group_with_members_stay(world: World) -> None:
    await with_offsets(world)
    async with members(world, "g", 1):
        body = {"group": "g", "topic": "t", "to": "earliest", "dry_run": False}
        assert "stop its members" in (await world.act(RESET, body, 409))["error"]
    assert (await committed(world.kafka, "g", 0))[0] == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"to": "never"}, 400),
        ({"to": "offset"}, 400),
        ({"to": "earliest", "partitions": [9]}, 400),
        ({"to": "earliest", "partitions": "all"}, 400),
        ({"to": "earliest", "topic": "missing"}, 404),
    ],
)
async def test_a_wrong_reset_is_refused(world: World, body: dict[str, Any], status: int) -> None:
    await with_offsets(world)
    await world.act(RESET, {"group": "g", "topic": "t", **body}, status)
