"""The command line as people see it."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from rota.coordinator.admin.commands import app
from rota.coordinator.admin.options import FLAGS
from rota.coordinator.admin.version import version_line

PLAIN = {"TERM": "dumb", "COLUMNS": "120", "NO_COLOR": "1"}


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner(env=PLAIN).invoke(app, arguments)
    return result.exit_code, re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_help_lists_the_commands() -> None:
    code, text = run("--help")
    assert code == 0
    assert "serve" in text
    assert "version" in text


def test_help_of_serve_explains_every_option() -> None:
    code, text = run("serve", "--help")
    assert code == 0
    for flag in (*FLAGS, "--memory"):
        assert flag in text
    for word in ("127.0.0.1:9092", "rota-data", "HOST:PORT", "authentication"):
        assert word in text


def test_version_prints_the_line_of_version_py() -> None:
    code, text = run("version")
    assert (code, text) == (0, f"{version_line()}\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("serve", "--what"), "No such option"),
        (("serve", "--ready-fd", "x"), "--ready-fd"),
        (("sevre",), "No such command"),
    ],
)
def test_a_wrong_command_line_is_explained(arguments: tuple[str, ...], says: str) -> None:
    code, text = run(*arguments)
    assert code == 2
    assert says in text


def test_settings_reach_the_broker() -> None:
    code, _ = run("serve", "--set", "num.partition=1")
    assert code == 2
