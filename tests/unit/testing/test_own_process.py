"""Brokers in a process of their own."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from rota.testing.errors import CommandRefused
from rota.testing.own_process import LIFETIME, CannotStart, OwnProcess
from rota.testing.server import seconds


def test_it_takes_commands_and_ends_when_it_is_closed() -> None:
    process = OwnProcess({"num.partitions": "2"})
    assert process.call("info")["bootstrap_servers"] == process.bootstrap_servers
    with pytest.raises(CommandRefused, match="no broker coordinates group"):
        process.call("rebalance", group="g")
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_it_lives_longer_than_any_test_run() -> None:
    """`rota test-server` ends after an hour by default, and the broker of a session must not."""
    process = OwnProcess()
    options = Path(f"/proc/{process.pid}/cmdline")
    words = options.read_text().split("\0") if options.exists() else ["--for", LIFETIME]
    process.close()
    assert seconds(words[words.index("--for") + 1]) >= timedelta(days=30).total_seconds()


def test_a_failed_start_raises_with_the_reason(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CannotStart, match="code 2"):
        OwnProcess({"no.such.property": "1"})
    assert "no.such.property" in capfd.readouterr().err
