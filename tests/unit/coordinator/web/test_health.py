"""`/healthz` and `/readyz` of a live broker."""

from __future__ import annotations

from tests.unit.coordinator.web.conftest import World


async def test_a_broker_that_runs_is_healthy_and_ready(world: World) -> None:
    healthy, ready = await world.http.get("/healthz"), await world.http.get("/readyz")
    assert (healthy.status, healthy.json["status"]) == (200, "ok")
    assert (ready.status, ready.json) == (200, {"ready": True, "reasons": [], "offline_partitions": 0})


async def test_a_broker_that_stops_is_healthy_and_not_ready(world: World) -> None:
    world.broker.http.site.is_stopping = True
    assert (await world.http.get("/healthz")).status == 200
    ready = await world.http.get("/readyz")
    assert (ready.status, ready.json["reasons"]) == (503, ["stopping"])
