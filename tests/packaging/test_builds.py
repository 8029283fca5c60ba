"""sdist and wheels by the hooks that every build front end calls: reproducible, and for each Python at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.packaging.source_tree import (
    BUILD,
    BUILD_WHEEL,
    EPOCH,
    ROOT,
    build,
    copy_of_sources,
    fresh_environment,
    outside,
    wheel_of,
)
from tests.soak import soak_only

OWN = "{}.{}".format(*sys.version_info)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@pytest.fixture(scope="module")
def other_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same sources as another user checked them out: at another time and path, private, files in another order."""
    folder = copy_of_sources(tmp_path_factory.mktemp("elsewhere") / "a longer name")
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o600)
            os.utime(path, (1_000_000_000, 1_000_000_000))
    return folder


ELSEWHERE = {"PYTHONHASHSEED": "2", "TZ": "Pacific/Kiritimati", "LC_ALL": "C"}


@soak_only
def test_two_sdists_are_the_same_bytes(sdist: Path, other_tree: Path) -> None:
    other = build(BUILD, other_tree, 0o077, **ELSEWHERE)
    assert other.name == sdist.name
    assert other.read_bytes() == sdist.read_bytes()
    with tarfile.open(sdist) as archive:
        assert {each.mtime for each in archive} == {EPOCH}
        assert {(each.uid, each.gid, each.uname, each.gname) for each in archive} == {(0, 0, "", "")}


@soak_only
def test_two_wheels_and_that_of_the_sdist_are_the_same_bytes(
    tree: Path, sdist: Path, other_tree: Path, tmp_path: Path
) -> None:
    wheel = build(BUILD_WHEEL, tree, PYTHONHASHSEED="1")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert build(BUILD_WHEEL, other_tree, 0o077, **ELSEWHERE).read_bytes() == wheel.read_bytes()
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert build(BUILD_WHEEL, unpacked).read_bytes() == wheel.read_bytes()
    with zipfile.ZipFile(wheel) as pure:
        assert {oct(each.external_attr >> 16) for each in pure.infolist()} == {"0o100644"}
        assert pure.testzip() is None


@soak_only
@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler is not installed")
def test_two_compiled_wheels_are_the_same_bytes(wheel: Path, other_tree: Path) -> None:
    """One from the sdist in an environment of its own, one in another folder with the packages of this environment."""
    other = build(BUILD_WHEEL, other_tree, 0o077, **ELSEWHERE, ROTA_COMPILE="1")
    assert other.name == wheel.name
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(other) as theirs:
        names = ours.namelist()
        assert any(name.endswith(".so") for name in names)
        assert names == theirs.namelist()
        assert [name for name in names if ours.read(name) != theirs.read(name)] == []
    assert other.read_bytes() == wheel.read_bytes()


def test_without_the_variable_the_times_are_those_of_the_files(tree: Path) -> None:
    environment = outside() | {"ROTA_COMPILE": "0"}
    out = tree.parent / "plain"
    subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=tree, env=environment, capture_output=True, check=True)
    (built,) = out.iterdir()
    with tarfile.open(built) as archive:
        assert len({each.mtime for each in archive}) > 1


@soak_only
@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler is not installed")
@pytest.mark.parametrize("version", PYTHONS)
def test_a_compiled_wheel_for_each_python_that_is_installed(
    version: str, sdist: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """What cibuildwheel does for each identifier, without its images: in an environment of what the build requires."""
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-V"], capture_output=True, check=False).returncode:
        pytest.skip(f"python{version} is not installed: its wheel is not built here")
    wheel = request.getfixturevalue("wheel") if version == OWN else wheel_of(sdist, tmp_path, python, ROTA_COMPILE="1")
    assert f"-cp{version.replace('.', '')}-cp" in wheel.name
    programs = fresh_environment(tmp_path / "fresh", f"rota[broker] @ {wheel.as_uri()}", python=python)
    script = ROOT / "tests" / "packaging" / "installed_wheel.py"
    done = subprocess.run(
        [str(programs / "python"), str(script), "--compiled"],
        cwd=tmp_path,
        env=outside(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "b'hello'\n" in done.stdout
