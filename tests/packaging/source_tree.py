"""Copies of the source tree: a build leaves files in its tree, and its environment must not find the working tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
# the codecs that `make` compiles for the other tests are optimized; what is built here is used for seconds
QUICK = {"ROTA_OPTIMIZE": "0"}


def copy_of_sources(folder: Path) -> Path:
    """Copy the files that git knows; returns the folder."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        original, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if original.is_symlink():
            copy.symlink_to(os.readlink(original))
        elif original.exists():
            copy.write_bytes(original.read_bytes())
    return folder


def outside() -> dict[str, str]:
    """The process's environment without PYTHONPATH, so that the working tree is not found, and with pip quiet."""
    ours = ("PYTHONPATH", "ROTA_COMPILE", "SOURCE_DATE_EPOCH")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"} | QUICK


def fresh_environment(home: Path, *requirements: str, python: str = sys.executable) -> Path:
    """Create an environment of that Python with the requirements, as constraints.txt has them; returns its programs."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(home)], check=True, env=outside())
    command = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    subprocess.run(
        [*command, "install", "-q", "--no-compile", "-c", str(CONSTRAINTS), *requirements], check=True, env=outside()
    )
    return home / "bin"
