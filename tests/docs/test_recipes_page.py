"""docs/RECIPES.md: every program runs as a reader would run it, and prints what the page says."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.docs.test_client_page import delete_all_records, run, without_new_topics
from tests.unit.client.network.scripted import eventually

from rota.testing import running_broker

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


AFTER_RETENTION = {  # what differs when a program runs again, and retention has deleted all that it had written
    "Stop at SIGTERM": ("committed: 3", "committed: 6"),
    "Retries and dead letters": ("charges-0@1", "charges-0@4"),
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_program_runs_after_retention_has_deleted_all_records(title: str) -> None:
    """Law C11."""
    (printed,) = PRINTED.findall(SECTIONS[title])
    with running_broker() as running:
        broker = running.bootstrap_servers
        run(program(title), broker)
        asyncio.run(delete_all_records(broker))
        again = run(without_new_topics(program(title)), broker)
    assert again == printed.replace(*AFTER_RETENTION.get(title, ("", "")))


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


def application(broker: str) -> Any:
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(program(LIFESPAN).replace("127.0.0.1:9092", broker), "docs/RECIPES.md", "exec"), names)  # noqa: S102
    return names["app"]


async def click_and_count(app: Any, first: int) -> None:
    """Three clicks, whose offsets begin with `first`, are counted."""
    for offset, page in enumerate(["home", "home", "about"], first):
        assert await answer(app, "POST", f"/clicks/{page}") == (200, {"offset": offset})
    await eventually(lambda: app.state.counts.total() == 3)
    assert await answer(app, "GET", "/counts") == (200, {"home": 2, "about": 1})


async def test_an_application_produces_and_consumes_for_its_lifespan(broker: str) -> None:
    app = application(broker)
    async with app.router.lifespan_context(app):
        await click_and_count(app, 0)
        app.state.counting.cancel()
        await asyncio.wait([app.state.counting])
        assert (await answer(app, "GET", "/counts"))[0] == 503


async def test_an_application_counts_after_retention_has_deleted_all_records() -> None:
    """Law C11."""
    with running_broker() as running:
        for first in (0, 3):
            app = application(running.bootstrap_servers)
            async with app.router.lifespan_context(app):
                await click_and_count(app, first)
            await delete_all_records(running.bootstrap_servers)
