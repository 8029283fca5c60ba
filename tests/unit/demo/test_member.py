"""What a member process prints."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from rota.client import TopicPartition
from rota.demo import member


def test_the_client_of_this_package_is_always_installed() -> None:
    assert member.installed_clients()[0] == "rota"
    assert set(member.installed_clients()) <= set(member.CLIENTS)


def test_a_client_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "CLIENTS", {"rota": "rota.client", "other": "no_such_package_here"})
    assert member.installed_clients() == ["rota"]


def test_a_batch_is_reported_by_its_first_and_last_offset(capsys: pytest.CaptureFixture[str]) -> None:
    member.report_batch({0: [3, 4, 5], 2: [9]})
    assert json.loads(capsys.readouterr().out) == {"kind": "read", "offsets": {"0": [3, 5], "2": [9, 9]}}


def test_an_assignment_is_reported_by_partition_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    member.report_assignment((TopicPartition("t", 3), TopicPartition("t", 1)))
    assert json.loads(capsys.readouterr().out) == {"kind": "assigned", "partitions": [1, 3]}


def test_sigterm_sets_the_stop_list() -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        stopping = member.stop_on_sigterm()
        assert not stopping
        signal.raise_signal(signal.SIGTERM)
        assert stopping
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_unknown_client_is_refused() -> None:
    command = [sys.executable, "-m", "rota.demo.member", "nobody", "name", "127.0.0.1:1", "topic", "group"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no such client: nobody" in done.stderr
