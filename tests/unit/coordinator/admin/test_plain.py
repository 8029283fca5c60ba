"""The commands where typer is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rota.coordinator.admin.plain import run_plain
from rota.coordinator.testing import running_broker

WITHOUT_TYPER = "import sys; sys.modules['typer'] = None; from rota.coordinator.admin.cli import main; main()"


def rota(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_TYPER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_version_needs_no_typer() -> None:
    done = rota("version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("rota ")


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_lists_the_commands_and_the_extra(arguments: tuple[str, ...]) -> None:
    done = rota(*arguments)
    assert done.returncode == 0
    for words in ("rota serve", "rota check", "rota demo", "rota version", "pip install 'rota[broker]'"):
        assert words in done.stdout


@pytest.mark.parametrize("arguments", [("sevre",), ("serve", "--what"), ("check", "a", "b")])
def test_a_wrong_command_line_prints_the_usage(arguments: tuple[str, ...]) -> None:
    done = rota(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: rota serve")


def test_check_asks_the_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with running_broker() as address:
        assert run_plain(["check", address]) == 0
    assert f"a broker answers at {address}" in capsys.readouterr().out
    assert run_plain(["check", address]) == 1
    assert "no broker answers" in capsys.readouterr().err
