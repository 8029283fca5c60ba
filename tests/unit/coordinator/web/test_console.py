"""The console's files, as they are served."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.web.console import FILES_BYTES_MAX, FOLDER, TYPES

SOURCES = sorted(path for path in FOLDER.rglob("*.js") if "uplot" not in path.parts)


def test_all_files_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < FILES_BYTES_MAX


def test_the_vendored_library_has_its_licence_and_version() -> None:
    assert "MIT License" in (FOLDER / "uplot" / "LICENSE").read_text()
    assert re.search(r"uPlot \d+\.\d+\.\d+", (FOLDER / "uplot" / "VERSION").read_text())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_text_is_never_html(path: Path) -> None:
    """What users name or write is put into text nodes and attributes."""
    source = path.read_text()
    for forbidden in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "srcdoc",
    ):
        assert forbidden not in source


def test_the_page_has_no_inline_script_and_no_inline_style() -> None:
    page = (FOLDER / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\bstyle=|\bon\w+=", page)
    assert not re.search(r"https?://", page)


async def test_the_files_are_served_with_their_types_and_only_they(world: World) -> None:
    page = await world.http.get("/")
    assert page.headers["content-type"].startswith("text/html")
    for path in FOLDER.rglob("*"):
        if path.suffix in TYPES and path.name != "index.html":
            answer = await world.http.get(f"/{path.relative_to(FOLDER).as_posix()}")
            assert (answer.status, answer.headers["content-type"]) == (200, TYPES[path.suffix])
            assert answer.body == path.read_bytes()
    for wrong in ("/index.html", "/static/app.js", "/%2e%2e/api.py", "/uplot/LICENSE", "//app.js"):
        assert (await world.http.get(wrong)).status == 404


async def test_a_file_that_a_browser_has_is_not_sent_again(world: World) -> None:
    first = await world.http.get("/app.js")
    again = await world.http.get("/app.js", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
