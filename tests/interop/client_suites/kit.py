"""Where client_suites' suites are kept, and what a run of one yields."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
SUITE_S_MAX = 600


class Unavailable(Exception):
    """The suite cannot be had here: no network, no Go."""


def home() -> Path:
    """The folder of downloaded suites, outside version control. ROTA_TEST_SUITES_HOME names another one."""
    return Path(os.environ.get("ROTA_TEST_SUITES_HOME") or ROOT / ".tools" / "client_suites")


def fetch(command: Sequence[str], cwd: Path, **environment: str) -> str:
    """What the command prints; Unavailable when it fails."""
    cwd.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Unavailable(f"{command[0]}: {why}") from why
    if done.returncode:
        raise Unavailable(f"{' '.join(command)}: {done.stderr[-500:]}")
    return done.stdout


def settle(part: Path, whole: Path) -> None:
    """Give a finished download its name; another process may have been quicker."""
    try:
        part.rename(whole)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
