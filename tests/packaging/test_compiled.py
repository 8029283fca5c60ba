"""The record codecs compiled and interpreted: one source, each value of ROTA_COMPILE, with and without a C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from tests.soak import soak_only

ROOT = Path(__file__).parents[2]
RECORDS = Path("src/rota/protocol/records")
COMPILED = ("fast.py", "consumed.py", "columns.py", "produced.py", "offset_columns.py")
PRINT_COMPILED = "from rota.protocol.records import COMPILED; print(COMPILED)"
WITHOUT_LIBRT = """
import sys
from rota.protocol.records import fast, consumed
assert "librt" not in sys.modules
sys.modules["librt"] = sys.modules["librt.strings"] = None
try:
    from rota.protocol.records import columns
except ImportError as error:
    print(error)
"""

RUN_WITHOUT_MYPYC = """
import runpy, sys
sys.modules["mypyc"] = sys.modules["mypyc.build"] = None
sys.argv = ["setup.py", *sys.argv[1:]]
runpy.run_path("setup.py")
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build needs: it writes into its tree, and compiled files must not reach the other tests."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, folder)
    for name in ("README.md", "LICENSE"):
        (folder / name).touch()
    only_source = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "protocol", folder / "src" / "rota" / "protocol", ignore=only_source)
    return folder


def build(tree: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    kept = {name: value for name, value in os.environ.items() if name not in ("ROTA_COMPILE", "CC")}
    variables = {**kept, "ROTA_OPTIMIZE": "0", **environment}
    return subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)


def compiled(tree: Path) -> list[Path]:
    return sorted((tree / RECORDS).glob("*.so"))


def output(tree: Path, program: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    return subprocess.check_output([sys.executable, "-c", program], cwd=tree, env=environment, text=True)


def is_compiled(tree: Path) -> bool:
    return output(tree, PRINT_COMPILED) == "True\n"


@soak_only
@pytest.mark.skipif(os.name != "posix", reason="the paths of a compiler are those of Linux and macOS")
def test_one_source_with_and_without_a_compiler(tree: Path) -> None:
    if shutil.which("cc") is not None:
        done = build(tree, ROTA_COMPILE="1")
        assert done.returncode == 0, done.stderr
        assert len(compiled(tree)) == 1 + len(COMPILED)
        assert is_compiled(tree)
        source = sha256(b"".join((tree / RECORDS / name).read_bytes() for name in COMPILED)).hexdigest().encode()
        assert [source in library.read_bytes() for library in compiled(tree)].count(True) == 1
        assert "librt" in output(tree, WITHOUT_LIBRT), "only columns need librt, and the error names it"

    done = build(tree, ROTA_COMPILE="0")
    assert done.returncode == 0, done.stderr
    assert compiled(tree) == [], "Python would import files of an earlier build"
    assert not is_compiled(tree)

    for stale in ("fast.cpython-0-stale.so", "consumed.cpython-0-stale.so", "fast__mypyc.cpython-0-stale.so"):
        (tree / RECORDS / stale).touch()
    shutil.rmtree(tree / "build", ignore_errors=True)
    done = build(tree, CC="/bin/false")
    assert done.returncode == 0, done.stderr
    assert "stay interpreted" in done.stdout + done.stderr
    assert compiled(tree) == []
    assert not is_compiled(tree)

    done = build(tree, CC="/bin/false", ROTA_COMPILE="1")
    assert done.returncode != 0, "ROTA_COMPILE=1 makes the failure an error"


@pytest.mark.parametrize(("command", "compiles"), [("egg_info", False), ("dist_info", False), ("build_ext", True)])
def test_metadata_are_written_without_mypyc(tree: Path, command: str, compiles: bool) -> None:
    """pip calls setup.py for metadata twice before it builds, and mypyc takes seconds each time."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_WITHOUT_MYPYC, command],
        cwd=tree,
        env=os.environ | {"ROTA_COMPILE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == compiles, done.stderr
