"""Which series are exposed: bounded, and stable from scrape to scrape."""

from __future__ import annotations

import pytest
from tests.chaos.requests import commit, create_topic
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.web import samples
from rota.coordinator.web.samples import OTHER, ExposedKeys, Samples, shard_label
from rota.protocol.group_timeline import EventMember, EventType, GroupEvent
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest


def test_an_exposed_key_stays_exposed_while_it_exists() -> None:
    exposed = ExposedKeys(2)
    list(exposed.update(["b", "c"]))
    list(exposed.update(["a", "b", "c"]))
    assert [key in exposed for key in "abc"] == [False, True, True]
    list(exposed.update(["a", "c", "d"]))
    assert [key in exposed for key in "abcd"] == [True, False, True, False]


async def test_beyond_a_limit_series_are_summed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOPICS_MAX", "PARTITIONS_MAX", "LAG_PARTITIONS_MAX"):
        monkeypatch.setattr(samples, name, 1)
    await create_topic(world.kafka, "t", 3)
    await create_topic(world.kafka, "u", 2)
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    for partition in range(3):
        await world.kafka.send_request(commit("g", partition, 0), 7)
    read = [each for each in Samples(world.broker.http.site, "1").read() if each is not None]
    labels = {name: [each.labels for each in read if each.family == name] for name in {each.family for each in read}}
    assert labels["rota_topic_bytes_in"] == [("t",), (OTHER,)]
    assert labels["rota_log_end_offset"] == [("t", "0")]
    assert labels["rota_group_lag_records"] == [("g", "t", "0")]


async def test_the_loop_may_turn_between_partitions_and_groups_also_beyond_a_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "PARTITIONS_MAX", 1)
    monkeypatch.setattr(samples, "LAG_PARTITIONS_MAX", 1)
    partitions = 60
    await create_topic(world.kafka, "t", partitions)
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    for group in range(60):
        await world.kafka.send_request(commit(f"g{group}", 0, 0), 7)
    longest = since = 0
    reads = Samples(world.broker.http.site, "1")
    list(reads.read())
    monkeypatch.setattr(samples.ExposedKeys, "__contains__", lambda exposed, key: found(key))

    def found(key: object) -> bool:
        nonlocal longest, since
        since += 1
        longest = max(longest, since)
        return False

    for sample in reads.read():
        since = 0 if sample is None else since
    assert longest <= 4, "keys that were looked at in one turn"


@pytest.mark.parametrize(
    ("state", "is_leader", "label"),
    [
        (ShardState.READY, True, "active"),
        (ShardState.CATCHING_UP, True, "loading"),
        (ShardState.CATCHING_UP, False, "standby"),
        (ShardState.DOWN, True, "down"),
        (ShardState.DOWN, False, "down"),
    ],
)
def test_each_state_of_a_shard_has_a_word(state: ShardState, is_leader: bool, label: str) -> None:
    assert shard_label(state, is_leader=is_leader) == label


async def test_findings_of_the_health_rules_are_exposed_until_they_end(world: World) -> None:
    health = world.broker.groups.health
    for life in range(3):
        for event_type in (EventType.MEMBER_JOINED, EventType.MEMBER_EXPIRED):
            event = GroupEvent(
                type=event_type,
                time_ms=world.broker.wall_ms(),
                members=[EventMember(member_id=f"a-{life}", client_id="a")],
            )
            world.broker.groups.timelines.add("g", event)
    health.event_added("g")
    health.round()

    def exposed() -> list[tuple[tuple[str, ...], object]]:
        read = Samples(world.broker.http.site, "1").read()
        return [(each.labels, each.value) for each in read if each is not None and each.family == "rota_group_findings"]

    assert exposed() == [(("g", "member-flaps", "warning"), 1)]
    world.broker.groups.timelines.forget("g")
    health.round()
    assert exposed() == []
