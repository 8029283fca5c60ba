"""Tables, JSON and errors."""

from __future__ import annotations

import io
import json
import sys

import pytest

from rota.cli.output import Output, print_error
from rota.cli.text import Table

TABLE = Table(("TOPIC", "N"), [("a\x1b[31m", 1), ("bb", 20)])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_aligned_text() -> None:
    stream = io.StringIO()
    Output(stream, as_json=False).show({}, TABLE)
    assert stream.getvalue() == "TOPIC       N\na\\x1b[31m   1\nbb         20\n"


def test_a_terminal_gets_a_table_of_rich_with_names_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    Output(stream, as_json=False).show({}, TABLE)
    assert "──" in stream.getvalue()
    assert "a\\x1b[31m" in stream.getvalue()


def test_without_rich_a_terminal_gets_aligned_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    stream = Terminal()
    Output(stream, as_json=False).show({}, TABLE)
    assert stream.getvalue().splitlines()[0] == "TOPIC       N"


def test_markup_in_names_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    Output(stream, as_json=False).show({}, Table(("GROUP",), [("[red]x[/red]",)]))
    assert "[red]x[/red]" in stream.getvalue()


def test_json_output_is_one_document_without_notes() -> None:
    stream = io.StringIO()
    out = Output(stream, as_json=True)
    out.note("for people")
    out.show({"topics": ["\x1b", "\ud800"]}, TABLE)
    assert json.loads(stream.getvalue()) == {"topics": ["\x1b", "\ud800"]}
    assert stream.getvalue().isascii()


def test_an_empty_table_prints_its_placeholder() -> None:
    stream = io.StringIO()
    Output(stream, as_json=False).show({}, Table(("TOPIC",), [], empty="no topics"))
    assert stream.getvalue() == "no topics\n"


def test_events_are_lines() -> None:
    stream = io.StringIO()
    Output(stream, as_json=True).event({"a": 1}, "one")
    Output(stream, as_json=False).event({"a": 1}, "one")
    assert stream.getvalue() == '{"a":1}\none\n'


def test_errors_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("no topic \x1b[2J", as_json=False, exit_code=1)
    print_error("no topic", as_json=True, exit_code=1, codes=("A",))
    text, document = capsys.readouterr().err.splitlines()
    assert text == "rota: no topic \\x1b[2J"
    assert json.loads(document) == {"error": {"message": "no topic", "codes": ["A"], "exit_code": 1}}
