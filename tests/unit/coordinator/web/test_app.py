"""The table of paths."""

from __future__ import annotations

from tests.unit.coordinator.web.conftest import World

from rota.coordinator.web.app import App


async def test_paths_stand_once_and_answer(world: World) -> None:
    paths = [route.path for route in App(world.broker.http.site).routes]
    assert len(set(paths)) == len(paths)
    for path in ("/metrics", "/healthz", "/readyz"):
        assert path in paths
        assert (await world.http.get(path)).status == 200
        assert (await world.http.send_request("POST", path, {})).status == 405
