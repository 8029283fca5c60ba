"""The API's table of paths, its document, and its refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from openapi_spec_validator import validate
from tests.chaos.requests import commit, create_topic
from tests.unit.coordinator.observe.events import Timeline, member
from tests.unit.coordinator.web.conftest import World
from tests.unit.coordinator.web.schema import DOCUMENT, check_answer

from rota.coordinator.observe.health import findings
from rota.coordinator.observe.timeline import decoded
from rota.coordinator.web import api, api_groups
from rota.coordinator.web.app import App
from rota.protocol.group_timeline import EventType
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest


def test_the_document_is_valid() -> None:
    validate(DOCUMENT)


async def test_the_document_has_the_routes_and_their_methods(world: World) -> None:
    routes = App(world.broker.http.site).routes
    served = {
        route.path: route.methods - {"HEAD"} for route in routes if route.path.startswith("/api/") and route.methods
    }
    documented = {path: {method.upper() for method in methods} for path, methods in DOCUMENT["paths"].items()}
    assert documented == served


async def test_the_document_is_served(world: World) -> None:
    assert (await world.http.get("/api/openapi.json")).json == DOCUMENT


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/topic", 400),
        ("/api/topic?topic=", 400),
        ("/api/topic?topic=missing", 404),
        ("/api/records?topic=missing", 404),
        ("/api/records?topic=missing&partition=-1", 400),
        ("/api/records?topic=missing&offset=1e5", 400),
        ("/api/records?topic=missing&offset=99999999999999999999", 400),
        ("/api/records?topic=missing&offset=%D9%A1", 400),
        ("/api/group", 400),
        ("/api/group?group=missing", 404),
        ("/api/group/lag?group=missing", 404),
    ],
)
async def test_a_wrong_request_gets_its_reason(world: World, path: str, status: int) -> None:
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    assert (await world.read(path, status))["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 5_000, b'"text"'])
async def test_a_body_that_is_no_json_object_is_refused(world: World, body: bytes) -> None:
    head = f"host: localhost\r\nx-rota-action: 1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    request = f"POST /api/actions/delete-group HTTP/1.1\r\nconnection: close\r\n{head}\r\n".encode()
    answer = await world.http.raw(request + body)
    assert answer.startswith(b"HTTP/1.1 400")


async def test_an_action_without_its_header_changes_nothing(world: World) -> None:
    answer = await world.http.send_request("POST", "/api/actions/create-topic", content_length="0")
    assert answer.status == 403
    check_answer("post", "/api/actions/create-topic", 403, answer.json)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was called in a thread; a flush may be among it."""
    called: list[Any] = []
    to_thread = asyncio.to_thread

    async def noted(call: Callable[..., Any], *arguments: Any) -> Any:
        called.append(call)
        return await to_thread(call, *arguments)

    monkeypatch.setattr(asyncio, "to_thread", noted)
    return called


async def test_wb16_the_groups_become_an_answer_outside_of_the_loop(world: World, threads: list[Any]) -> None:
    await create_topic(world.kafka, "t", 1)
    await world.broker.groups.ensure_topic()
    names = [f"group-{number}" for number in range(3)]
    for name in names:
        await world.kafka.send_request(commit(name, 0, 0), 7)
    listed = (await world.read("/api/groups"))["groups"]
    assert [each["group"] for each in listed] == names
    of_the_answer = api_groups._listed, api.text_of
    assert [call for call in threads if call in of_the_answer] == [*of_the_answer]


async def test_wb34_the_events_of_a_group_are_decoded_and_explained_outside_of_the_loop(
    world: World, threads: list[Any]
) -> None:
    await world.broker.groups.ensure_topic()
    events = Timeline().add(EventType.REBALANCE_STARTED, member("a-1"), trigger="member-joined").events
    world.broker.groups.timelines.add("g", events[0])
    answers = [await world.read(f"/api/group/{path}?group=g") for path in ("timeline", "why", "health")]
    assert [len(answers[0]["events"]), len(answers[0]["rebalances"]), len(answers[1]["rebalances"])] == [1, 1, 1]
    calls = {decoded, api_groups._timeline, api_groups._reasons, findings, api.text_of}
    assert [call.__name__ for call in threads if call in calls] == [
        *("decoded", "_timeline", "text_of"),
        *("decoded", "_reasons", "text_of"),
        *("decoded", "findings", "text_of"),
    ]


def test_wb16_the_entries_of_a_list_are_the_json_of_the_document() -> None:
    document = {"a": [], "b": [{"c": "é\n"}, None, [1.5]], "d": {"e": []}, "f": True}
    assert api.text_of(document).decode() == json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    assert api.text_of({}) == b"{}"
