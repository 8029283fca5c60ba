"""GET /session of a console without a login; the rest is in test_login.py."""

from __future__ import annotations

from tests.unit.coordinator.web.conftest import World


async def test_a_console_without_a_login_says_that_none_is_needed(world: World) -> None:
    answer = await world.http.get("/session")
    assert answer.json == {"needs_login": False, "user": None, "role": None, "action_token": "1"}
    assert answer.headers["cache-control"] == "no-store"
    assert (await world.http.post("/session/login", {"user": "a", "password": "planted"})).status == 404
