"""Progress is drawn on a terminal only."""

from __future__ import annotations

import io
import sys

import pytest

from rota.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("sent", "records") as progress:
        progress.advance(5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("total", [None, 10])
def test_on_a_terminal_it_is_drawn_on_standard_error(
    total: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("sent", "records", total) as progress:
        progress.advance(5)
    assert "records" in sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert capsys.readouterr().out == ""


def test_without_rich_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with Progress("sent", "records") as progress:
        progress.advance(5)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
