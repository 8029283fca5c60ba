"""The plugin that greps the output of all tests (tests/secrets_in_output.py) finds what it looks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.secrets_in_output import arguments_with_secrets, secrets_of

SECRET = "plan" + "ted-secret"  # not in a traceback of this file
TEST = f"""
import logging
def test_print(): print("{SECRET}")
def test_log(): logging.getLogger("x").warning("{SECRET}")
def test_file(tmp_path): (tmp_path / "broker.log").write_text("{SECRET}")
def test_quiet(): assert "{SECRET}"
"""


def test_a_secret_in_the_output_of_a_test_fails_it(tmp_path: Path) -> None:
    (tmp_path / "test_story.py").write_text(TEST)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.secrets_in_output",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    finished = subprocess.run(
        [*command, "-q", "--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed, 3 errors" in finished.stdout, finished.stdout[-2000:].replace(SECRET, "")


def test_a_secret_among_the_arguments_of_a_process_of_ours_is_found(request: pytest.FixtureRequest) -> None:
    for arguments in ([sys.executable, "-m", "rota.nothing", SECRET], [sys.executable, "-c", "pass", SECRET]):
        subprocess.run(arguments, check=False, capture_output=True)
    assert len(arguments_with_secrets) == 1
    assert any("process arguments" in each for each in secrets_of(request.node))
    assert not arguments_with_secrets
