"""docs/RECIPES.md: every program runs as a reader would run it, and prints what the page says."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.docs.test_client_page import run
from tests.unit.client.network.scripted import eventually

PAGE = (Path(__file__).parents[2] / "docs" / "RECIPES.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAMS = [title for title, text in SECTIONS.items() if PRINTED.search(text)]
LIFESPAN = "FastAPI and Starlette"

pytestmark = pytest.mark.timeout(60)


def program(title: str) -> str:
    (code,) = PROGRAM.findall(SECTIONS[title])
    return str(code)


def test_every_program_of_the_page_is_run() -> None:
    assert len(PROGRAMS) == 5
    assert [title for title, text in SECTIONS.items() if PROGRAM.search(text)] == [*PROGRAMS, LIFESPAN]


@pytest.mark.parametrize("title", PROGRAMS)
def test_each_program_prints_the_output_of_the_page(title: str, broker: str) -> None:
    (printed,) = PRINTED.findall(SECTIONS[title])
    assert run(program(title), broker) == printed


async def answer(app: Any, method: str, path: str) -> tuple[int, Any]:
    """Status and JSON of one request to an ASGI application."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": [], "app": app}
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


async def test_an_application_produces_and_consumes_for_its_lifespan(broker: str) -> None:
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(program(LIFESPAN).replace("127.0.0.1:9092", broker), "docs/RECIPES.md", "exec"), names)  # noqa: S102
    app = names["app"]
    async with app.router.lifespan_context(app):
        for offset, page in enumerate(["home", "home", "about"]):
            assert await answer(app, "POST", f"/clicks/{page}") == (200, {"offset": offset})
        await eventually(lambda: app.state.counts.total() == 3)
        assert await answer(app, "GET", "/counts") == (200, {"home": 2, "about": 1})
        app.state.counting.cancel()
        await asyncio.wait([app.state.counting])
        assert (await answer(app, "GET", "/counts"))[0] == 503
