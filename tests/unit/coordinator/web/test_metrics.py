"""`/metrics` of a live broker, in the formats of Prometheus."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain
from tests.chaos.requests import NOW_MS, batch, commit, create_topic, produce, records_of
from tests.unit.coordinator.web.conftest import World, members

from rota.coordinator.observe.counters import ApiCounters
from rota.coordinator.observe.lag import GroupLag
from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.web import metrics
from rota.coordinator.web.families import FAMILIES, sample_names
from rota.coordinator.web.metrics import cumulative
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest

Labels = dict[str, str]


async def scraped(world: World) -> dict[str, list[tuple[Labels, float]]]:
    found: dict[str, list[tuple[Labels, float]]] = {}
    for family in plain((await world.http.get("/metrics")).text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


async def value(world: World, name: str, **labels: str) -> float:
    """The one sample with these labels."""
    (found,) = [number for has, number in (await scraped(world))[name] if labels.items() <= has.items()]
    return found


async def used(world: World) -> None:
    await create_topic(world.kafka, "t", 2)
    await world.kafka.send_request(produce(0, batch(b"one", b"two", b"three")), 9)
    await records_of(world.kafka, 0)
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    await world.kafka.send_request(commit("g", 0, 1), 7)
    await world.kafka.send_request(HeartbeatRequest(group_id="g", generation_id=1, member_id="x"), 4)


async def test_requests_of_clients_are_counted(world: World) -> None:
    await used(world)
    assert await value(world, "rota_topic_records_in_total", topic="t") == 3
    assert await value(world, "rota_topic_bytes_in_total", topic="t") == len(batch(b"one", b"two", b"three"))
    assert await value(world, "rota_topic_bytes_out_total", topic="t") == len(batch(b"one", b"two", b"three"))
    assert await value(world, "rota_request_latency_seconds_count", api="Produce") == 1
    assert await value(world, "rota_request_latency_seconds_count", api="OffsetCommit") == 1
    assert await value(world, "rota_request_errors_total", api="Heartbeat", error="UNKNOWN_MEMBER_ID") == 1
    assert await value(world, "rota_log_end_offset", topic="t", partition="0") == 3
    assert await value(world, "rota_group_lag_records", group="g", topic="t", partition="0") == 2
    age_seconds = (world.broker.wall_ms() - NOW_MS) / 1000  # of the first record that is not read
    assert await value(world, "rota_group_lag_seconds", group="g", topic="t", partition="0") == pytest.approx(
        age_seconds, rel=0.01
    )
    assert await value(world, "rota_groups", state="Empty") == 1
    assert await value(world, "rota_coordinator_shards", state="active") == 4
    assert await value(world, "rota_connections") == 1
    assert await value(world, "rota_leaders") == 6


async def test_rebalances_are_counted_by_cause_and_timed(world: World) -> None:
    await create_topic(world.kafka, "t", 2)
    async with members(world, "g", 2):
        assert await value(world, "rota_group_members", group="g") == 2
    assert await value(world, "rota_rebalances_total", cause="member-joined") >= 1
    assert await value(world, "rota_rebalance_duration_seconds_count", cause="member-joined") >= 1
    assert await value(world, "rota_rebalances_total", cause="member-left") >= 1


async def test_every_sample_is_of_the_table(world: World) -> None:
    await used(world)
    names = {name for name in await scraped(world) if name.startswith("rota_")}
    assert names <= sample_names() | {name.replace("_bucket", "_created") for name in sample_names()}
    assert {"rota_ready", "rota_active_controller", "rota_under_replicated_partitions"} <= names


async def test_names_of_users_cannot_forge_a_line(world: World) -> None:
    name = 'g"} 7\nrota_ready 0 # \\'
    await create_topic(world.kafka, "t", 1)
    await world.kafka.send_request(FindCoordinatorRequest(key=name), 2)
    await world.kafka.send_request(commit(name, 0, 0), 7)
    assert await value(world, "rota_ready") == 1
    assert await value(world, "rota_group_lag_records", group=name, topic="t", partition="0") == 0


async def test_the_accept_header_selects_openmetrics(world: World) -> None:
    answer = await world.http.get("/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert {family.name for family in openmetrics(answer.text)} >= {"rota_ready", "rota_loop_stalls"}


def test_buckets_are_cumulative() -> None:
    counters = ApiCounters()
    counters.add(2, 1)
    counters.add(3, 1 << 60)
    found = list(cumulative(counters))
    assert [count for _, count in found] == [2] * (len(found) - 1) + [5]
    assert found[-1][0] == "+Inf"


def test_each_family_has_its_own_help() -> None:
    assert len({family.help for family in FAMILIES.values()}) == len(FAMILIES)


async def test_gl2_scrapes_refresh_the_lag_of_all_groups_in_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []
    get = Lag.get

    async def noted(self: Lag, group_id: str) -> GroupLag:
        requests.append(group_id)
        return await get(self, group_id)

    monkeypatch.setattr(Lag, "get", noted)
    monkeypatch.setattr(metrics, "LAG_GROUPS_MAX", 2)
    await used(world)
    for group_id in ("h", "i"):
        await world.kafka.send_request(commit(group_id, 0, 1), 7)
    for count in (2, 3, 3):
        await world.http.get("/metrics")
        assert len(requests) == len(set(requests)) == count
    assert await value(world, "rota_group_lag_records", group="i", topic="t", partition="0") == 2
    await world.kafka.send_request(commit("i", 0, 3), 7)
    assert await value(world, "rota_group_lag_records", group="i", topic="t", partition="0") == 0
    assert await value(world, "rota_group_lag_seconds", group="i", topic="t", partition="0") == 0
    assert sorted(requests) == ["g", "h", "i"]
    monkeypatch.setattr(metrics, "LAG_CACHE_MS", 0)
    await world.http.get("/metrics")
    assert requests[3:] == requests[:2]
