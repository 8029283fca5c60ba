"""A test fails when a secret is in its output, in a log file of its folder, or in the arguments of a process of Rota's.

Secrets of tests have the word PLANTED in them. Captured output is logs, and error texts of broker and command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

PLANTED: Final = "planted"
LOG_BYTES_MAX: Final = 8 << 20
LOG_NAMES: Final = ("*.log", "*.out")

arguments_with_secrets: list[str] = []
_watches: list[bool] = []


def pytest_configure(config: pytest.Config) -> None:
    """Remember the processes of Rota's that are started with a secret among their arguments."""
    if not _watches:
        _watches.append(True)
        sys.addaudithook(_audit)  # there is no way to remove it


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        command = " ".join(os.fsdecode(each) for each in arguments[1] or ())
        if PLANTED in command and _is_ours(command):
            arguments_with_secrets.append(command)


def _is_ours(command: str) -> bool:
    program, _, rest = command.partition(" ")
    return program.endswith("/rota") or rest.startswith("-m rota")


def secrets_of(item: pytest.Item) -> list[str]:
    """Return where a secret is in the output of a test that has run."""
    found = [f"{kind} of {when}" for when, kind, text in item._report_sections if PLANTED in text.lower()]
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is not None:
        found += [str(path) for name in LOG_NAMES for path in folder.rglob(name) if _has_secret(path)]
    found += [f"process arguments: {each}" for each in arguments_with_secrets]
    arguments_with_secrets.clear()
    return found


def _has_secret(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return PLANTED.encode() in file.read(LOG_BYTES_MAX).lower()
    except OSError:
        return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail the teardown of a test whose output has a secret. A test that has failed shows its own values."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    if report.when == "teardown" and report.passed and not item.stash.get(FAILED, False):
        found = secrets_of(item)
        if found:
            report.outcome = "failed"
            report.longrepr = f"a planted secret is in the output of {item.nodeid}: {'; '.join(found)}"
    return report


FAILED: Final = pytest.StashKey[bool]()
