"""Copies of the source tree: a build leaves files in its tree, and its environment must not find the working tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.soak import SOAK
from uv import find_uv_bin

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
# the codecs that `make` compiles for the other tests are optimized; what is built here is used for seconds
QUICK = {"ROTA_OPTIMIZE": "0"}
COMPILED = SOAK and shutil.which("cc") is not None  # the wheel of the tests: compiling it takes ten core-seconds
EPOCH = 1_700_000_001  # odd: a zip file has two-second times
BUILD = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
BUILD_WHEEL = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


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
    """Create an environment of that Python with the requirements, as constraints.txt has them; returns its programs.

    uv, because pip needs five times as much CPU time; pip builds the wheel without a compiler, and runs pipx's demo.
    """
    quiet = [find_uv_bin(), "--quiet", "--no-config"]
    subprocess.run([*quiet, "venv", "--python", python, str(home)], check=True, env=outside())
    command = [*quiet, "pip", "install", "--python", str(home / "bin" / "python"), "-c", str(CONSTRAINTS)]
    subprocess.run([*command, *requirements], check=True, env=outside())
    return home / "bin"


def build(hook: str, tree: Path, umask: int = 0o022, **variables: str) -> Path:
    """Call a hook in the tree, with interpreted codecs; returns the file that it wrote."""
    out = tree.parent / f"{tree.name}-{len(list(tree.parent.iterdir()))}"
    out.mkdir()
    environment = outside() | {"ROTA_COMPILE": "0", "SOURCE_DATE_EPOCH": str(EPOCH)} | variables
    command = [sys.executable, "-c", hook, str(out)]
    done = subprocess.run(command, cwd=tree, env=environment, umask=umask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    return built


def wheel_of(sdist: Path, folder: Path, python: str, **variables: str) -> Path:
    """Build a wheel for that Python, in an environment of the packages that a build requires; returns it.

    Those are the versions of constraints.txt: another mypyc writes other C code.
    """
    command = [find_uv_bin(), "--quiet", "--no-config", "build", "--wheel", "--python", python]
    command += ["--build-constraints", str(CONSTRAINTS), "--out-dir", str(folder), str(sdist)]
    subprocess.run(command, check=True, env=outside() | {"SOURCE_DATE_EPOCH": str(EPOCH)} | variables)
    (wheel,) = folder.glob("*.whl")
    return wheel
