"""A test fails when a secret is in its output, in a log file of its folders, in the arguments of a process of Rota's,
or in what such a process prints into a pipe.

Secrets of tests have the word PLANTED in them. Captured output is logs, and error texts of broker and command line.
Folders that fixtures share are looked at when the tests of a file are over, and those fixtures with them.
"""

from __future__ import annotations

import asyncio.subprocess
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

PLANTED: Final = "planted"
LOG_BYTES_MAX: Final = 8 << 20
LOG_ENDS: Final = (".log", ".out")

processes_with_secrets: list[str] = []  # where they are, of the test that runs
_shared_folders: list[Path] = []  # of fixtures that more than one test use
_seen: dict[Path, int] = {}  # the size of the logs there that are looked through
_watches: list[bool] = []


def pytest_configure(config: pytest.Config) -> None:
    """Watch the processes of Rota's, and the folders of fixtures."""
    if not _watches:
        _watches.append(True)
        _watch_arguments()
        _watch_pipes()
        _watch_folders()


def _watch_arguments() -> None:
    """Look at the arguments of each process. One that asyncio starts is a `Popen`, too.

    A hook for audit events would be called for all that Python does: it took a tenth of some tests.
    """
    of_process = subprocess.Popen.__init__

    def start(self: Any, args: Any, *more: Any, **named: Any) -> None:
        words = _words(args)
        if PLANTED in " ".join(words) and _is_ours(words):
            processes_with_secrets.append(f"process arguments: {' '.join(words)}")
        of_process(self, args, *more, **named)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign,assignment]


def _words(command: Any) -> list[str]:
    """Return the words of a command; a line for a shell is one of its arguments."""
    arguments = [command] if isinstance(command, str | bytes | os.PathLike) else command or ()
    return [word for each in arguments for word in os.fsdecode(each).split()]


def _is_ours(words: list[str]) -> bool:
    """Return whether a command runs Rota: its program, or a module of it; perhaps by another program, as `nice`."""
    modules = (after for word, after in pairwise(words) if word == "-m")
    return any(Path(word).name == "rota" for word in words) or any(each.startswith("rota") for each in modules)


def _watch_pipes() -> None:
    """Look at what our processes print, where a test reads it at their end."""
    of_process, of_asyncio = subprocess.Popen.communicate, asyncio.subprocess.Process.communicate

    def communicate(self: Any, *arguments: Any, **named: Any) -> Any:
        printed = of_process(self, *arguments, **named)
        _look_at(self.args, printed)
        return printed

    async def communicate_async(self: Any, *arguments: Any, **named: Any) -> Any:
        printed = await of_asyncio(self, *arguments, **named)
        process = self._transport.get_extra_info("subprocess")
        _look_at(getattr(process, "args", ()), printed)
        return printed

    subprocess.Popen.communicate = communicate  # type: ignore[method-assign,assignment]
    asyncio.subprocess.Process.communicate = communicate_async  # type: ignore[method-assign]


def _look_at(command: Any, printed: tuple[Any, ...]) -> None:
    words = _words(command)
    texts = (each if isinstance(each, bytes) else (each or "").encode() for each in printed)
    if any(PLANTED.encode() in text.lower() for text in texts) and _is_ours(words):
        processes_with_secrets.append(f"output of a process: {' '.join(words)}")


def _watch_folders() -> None:
    """Remember the folders of `tmp_path_factory`, but for those of `tmp_path`."""
    mktemp = pytest.TempPathFactory.mktemp

    def remembered(self: pytest.TempPathFactory, basename: str, numbered: bool = True) -> Path:
        folder = mktemp(self, basename, numbered)
        if sys._getframe(1).f_code.co_name != "_mk_tmp":
            _shared_folders.append(folder)
        return folder

    pytest.TempPathFactory.mktemp = remembered  # type: ignore[method-assign]


def secrets_of(item: pytest.Item) -> list[str]:
    """Return where a secret is in the output of a test that has run."""
    found = [f"{kind} of {when}" for when, kind, text in item._report_sections if PLANTED in text.lower()]
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is not None:
        found += [str(path) for path in _logs(folder) if _has_secret(path)]
    found += processes_with_secrets
    processes_with_secrets.clear()
    return found


def secrets_of_shared_folders() -> list[str]:
    """Return the logs of shared folders that have a secret, and that were not looked through at their size before."""
    found = []
    for path in (path for folder in _shared_folders for path in _logs(folder)):
        size = path.stat().st_size if path.exists() else 0
        if _seen.get(path) != size:
            _seen[path] = size
            found += [str(path)] if _has_secret(path) else []
    return found


def _logs(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names if name.endswith(LOG_ENDS))


def _has_secret(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return PLANTED.encode() in file.read(LOG_BYTES_MAX).lower()
    except OSError:
        return False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    item.stash[IS_LAST] = nextitem is None or nextitem.path != item.path


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
        if item.stash.get(IS_LAST, False):
            found += secrets_of_shared_folders()
        if found:
            report.outcome = "failed"
            report.longrepr = f"a planted secret is in the output of {item.nodeid}: {'; '.join(found)}"
    return report


FAILED: Final = pytest.StashKey[bool]()
IS_LAST: Final = pytest.StashKey[bool]()  # of its file in this process
