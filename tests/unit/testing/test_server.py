"""The command `rota test-server`."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser

import pytest

from rota.testing.server import add_arguments, run, seconds

COMMAND = [sys.executable, "-m", "rota.coordinator", "test-server"]


@pytest.mark.parametrize(("text", "expected"), [("30s", 30), ("500ms", 0.5), ("5m", 300), ("1h", 3600), ("2", 2)])
def test_durations(text: str, expected: float) -> None:
    assert seconds(text) == expected


def test_a_duration_that_is_none() -> None:
    with pytest.raises(ValueError, match="write 30s"):
        seconds("soon")


def test_it_prints_one_line_and_ends_with_its_input() -> None:
    done = subprocess.run([*COMMAND, "--json"], input="", capture_output=True, text=True, timeout=60, check=True)
    (line,) = done.stdout.splitlines()
    ready = json.loads(line)
    assert ready["control"].startswith("http://127.0.0.1:")
    assert ready["bootstrap_servers"].startswith("127.0.0.1:")


def test_it_ends_after_its_time_though_its_input_stays_open() -> None:
    process = subprocess.Popen([*COMMAND, "--for", "1ms"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on 127.0.0.1:")
        assert process.wait(60) == 0


def test_a_setting_without_a_value_cannot_start(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    add_arguments("test-server", parser)
    options = parser.parse_args(["--set", "num.partitions"])
    assert options.run is run
    assert run(options) == 2
    assert "NAME=VALUE" in capsys.readouterr().err
