"""docs/demo.svg is a picture of the demo: this test runs the demo and draws what its screen showed.

ROTA_DEMO_PICTURE=docs/demo.svg writes the picture of the run there; `make docs` does.
"""

from __future__ import annotations

import asyncio
import html
import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from rota.demo.live_screen import picture
from rota.demo.member import installed_clients
from rota.demo.scenario import Scenario
from rota.demo.screen import State

PICTURE = Path(__file__).parents[2] / "docs" / "demo.svg"
CHAPTER = "The group reads to the end"  # drawn at its beginning: the others have the partitions of the killed member
COLUMNS = 118
WEB_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)

# what the demo puts above its tables and its log, and what happened before CHAPTER
HEADINGS = ["member", "state", "partitions", "records read", "committed", "lag", "what happened, and why"]
EVENTS = ["consuming", "killed (SIGKILL)", "Preparing to rebalance", "Stabilized", "reason="]


class DrawingScreen:
    """Draws the first picture of CHAPTER."""

    def __init__(self) -> None:
        self.svg = ""

    def show(self, state: State) -> None:
        if state.chapter == CHAPTER and not self.svg:
            console = Console(record=True, width=COLUMNS, file=io.StringIO())
            console.print(picture(state))
            self.svg = WEB_FONTS.sub("", console.export_svg(title="rota demo", unique_id="demo"))


def words(svg: str) -> str:
    """The text of a picture."""
    return " ".join(html.unescape(line).replace("\xa0", " ") for line in re.findall(r"<text[^>]*>(.*?)</text>", svg))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> str:
    screen = DrawingScreen()
    scenario = Scenario(tmp_path_factory.mktemp("demo"), screen, installed_clients())
    try:
        asyncio.run(scenario.run())
    finally:
        scenario.close()
    if target := os.environ.get("ROTA_DEMO_PICTURE"):
        Path(target).write_text(screen.svg)
    return screen.svg


def test_a_run_draws_its_chapter_its_members_and_the_reasons(drawn: str) -> None:
    text = words(drawn)
    assert [part for part in [CHAPTER, *HEADINGS, *EVENTS, *installed_clients()] if part not in text] == []


def test_the_picture_of_the_readme_has_the_texts_of_the_demo(drawn: str) -> None:
    kept = PICTURE.read_text()
    text = words(kept)
    assert [part for part in [CHAPTER, *HEADINGS, *EVENTS, *installed_clients()] if part not in text] == []
    style = re.compile(r"<style>.*?</style>", re.DOTALL)
    assert style.findall(kept)[0].split("}")[0] == style.findall(drawn)[0].split("}")[0], "made by the same code"


def test_the_picture_loads_no_fonts_from_the_web() -> None:
    assert re.findall(r"url\(\"?http[^)]*\)|(?:src|href)=\"http[^\"]*", PICTURE.read_text()) == []
