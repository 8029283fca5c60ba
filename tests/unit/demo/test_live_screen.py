"""The demo on a terminal."""

from __future__ import annotations

import io
import os
import pty
from typing import TextIO

import pytest
from rich.console import Console

from rota.demo.live_screen import LiveScreen, live_screen, picture
from rota.demo.scenario import open_screen
from rota.demo.screen import LineScreen, State

STATE = State(
    chapter="The group reads to the end",
    committed={0: 5},
    ends={0: 7, 1: 1_234},
    events=[
        {"event": "Preparing to rebalance group", "group": "g", "generation": 3, "state": "Stable", "reason": "[x]"},
    ],
)


def test_the_picture_has_the_chapter_the_generation_the_lag_and_the_reason() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(picture(STATE))
    text = console.export_text()
    for words in ("The group reads to the end", "group g: generation 3, Stable", "1,234", "reason=[x]"):
        assert words in text


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_output_after_the_last_frame_begins_on_a_new_line(stream: TextIO) -> None:
    with live_screen(stream) as screen:
        screen.show(STATE)
    print("done", file=stream)
    assert isinstance(stream, io.StringIO)
    assert "\ndone\n" in stream.getvalue().replace("\r", "").replace("\x1b[?25h", "")


def test_a_terminal_gets_the_live_screen_where_rich_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as stream:
        with open_screen(stream) as screen:
            assert isinstance(screen, LiveScreen)
        monkeypatch.setitem(__import__("sys").modules, "rota.demo.live_screen", None)
        with open_screen(stream) as screen:
            assert isinstance(screen, LineScreen)
    os.close(leader)
