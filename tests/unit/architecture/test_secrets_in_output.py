"""The plugin that greps the output of all tests (tests/secrets_in_output.py) finds what it looks for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.secrets_in_output import processes_with_secrets, secrets_of

SECRET = "plan" + "ted-secret"  # not in a traceback of this file
TEST = f"""
import logging, pytest
@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    yield folder
    (folder / "broker.log").write_text("{SECRET}")
def test_print(): print("{SECRET}")
def test_log(): logging.getLogger("x").warning("{SECRET}")
def test_file(tmp_path): (tmp_path / "broker.log").write_text("{SECRET}")
def test_quiet(shared): assert "{SECRET}"
def test_last(shared): pass
"""


def test_a_secret_in_the_output_of_a_test_fails_it(tmp_path: Path) -> None:
    """Of a log in a shared folder, which is whole with the end of its fixture, the last test of the file is told."""
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
        "-p",
        "no:randomly",
    ]
    finished = subprocess.run(
        [*command, "-q", "--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "5 passed, 4 errors" in finished.stdout, finished.stdout[-2000:].replace(SECRET, "")
    assert "shared0/broker.log" in finished.stdout


def found_in(request: pytest.FixtureRequest) -> list[str]:
    found = secrets_of(request.node)
    assert not processes_with_secrets
    return found


@pytest.mark.parametrize(
    ("command", "is_ours"),
    [
        ([sys.executable, "-m", "rota.nothing", SECRET], True),
        ([sys.executable, "-X", "utf8", "-m", "rota.nothing", SECRET], True),
        (["env", sys.executable, "-m", "rota.nothing", SECRET], True),
        (["env", "true", "bin/rota", SECRET], True),
        ([sys.executable, "-c", "pass", SECRET], False),
    ],
)
async def test_a_secret_among_the_arguments_of_a_process_of_ours_is_found(
    request: pytest.FixtureRequest, command: list[str], *, is_ours: bool
) -> None:
    """Also of one that asyncio starts, and in a line for a shell."""
    await asyncio.to_thread(subprocess.run, command, check=False, capture_output=True)
    await asyncio.to_thread(subprocess.run, " ".join(command), shell=True, check=False, capture_output=True)
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    await process.wait()
    arguments = [each for each in found_in(request) if each.startswith("process arguments")]
    assert len(arguments) == 3 * is_ours


@pytest.mark.parametrize(("name", "is_ours"), [("rota", True), ("other", False)])
async def test_a_secret_that_a_process_of_ours_prints_into_a_pipe_is_found(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, *, is_ours: bool
) -> None:
    program = tmp_path / name
    program.write_text("#!/bin/sh\necho plan''ted-secret\n")
    program.chmod(0o755)
    await asyncio.to_thread(subprocess.run, [program], check=True, capture_output=True, text=True)
    process = await asyncio.create_subprocess_exec(program, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    assert SECRET in printed.decode()
    assert len([each for each in found_in(request) if each.startswith("output of a process")]) == 2 * is_ours
