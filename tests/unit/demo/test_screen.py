"""The demo without a terminal: lines."""

from __future__ import annotations

import io

from rota.demo.scenario import open_screen
from rota.demo.screen import LineScreen, State, fields

PREPARING = {"event": "Preparing to rebalance group", "time": "t", "level": "info", "group": "g", "generation": 1}


def shown(*states: State) -> list[str]:
    stream = io.StringIO()
    screen = LineScreen(stream)
    for state in states:
        screen.show(state)
    assert stream.getvalue().endswith("\n")
    return stream.getvalue().splitlines()


def test_a_chapter_is_printed_once() -> None:
    first, second = State(chapter="one"), State(chapter="two")
    assert shown(first, first, second) == ["== one", "== two"]


def test_a_rebalance_is_printed_once_and_other_log_lines_are_not() -> None:
    state = State(chapter="one", events=[{"event": "listening", "port": 1}, PREPARING])
    assert shown(state, state) == ["== one", "   Preparing to rebalance group  generation=1"]


def test_fields_are_shown_without_tails_of_member_ids() -> None:
    member = "rota-0a1b2c3d-0000-1111-2222-0123456789ab"
    assert fields({"event": "x", "member": member, "reason": None}) == "member=rota…"


def test_lag_is_the_end_offset_minus_the_committed_offset() -> None:
    assert State(committed={0: 5}, ends={0: 7, 1: 3}).lag() == 5


def test_a_stream_that_is_no_terminal_gets_lines() -> None:
    with open_screen(io.StringIO()) as screen:
        assert isinstance(screen, LineScreen)
