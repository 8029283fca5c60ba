"""[tool.cibuildwheel] of pyproject.toml: it agrees with the rest of the file, and cibuildwheel itself accepts it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from tests.packaging.source_tree import ROOT, fresh_environment, outside
from tests.packaging.test_builds import PYTHONS

DOCUMENT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, WHEELS = DOCUMENT["project"], DOCUMENT["tool"]["cibuildwheel"]
CIBUILDWHEEL = "cibuildwheel==4.3.3"
EXPECTED = {"linux": ("manylinux_{}", "musllinux_{}"), "macos": ("macosx_{}",)}


def test_wheels_are_built_for_the_pythons_that_the_project_names() -> None:
    of_classifiers = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert [each.replace("cp3", "3.").removesuffix("-*") for each in WHEELS["build"]] == of_classifiers == [*PYTHONS]
    required = SpecifierSet(PROJECT["requires-python"])
    minors = [f"3.{minor}" for minor in range(int(of_classifiers[-1][2:]) + 1) if required.contains(f"3.{minor}")]
    assert minors == of_classifiers


def test_a_wheel_is_compiled_or_not_built_and_is_tested_with_a_broker() -> None:
    assert WHEELS["environment"] == {"ROTA_COMPILE": "1"}
    assert set(WHEELS["test-extras"]) <= set(PROJECT["optional-dependencies"])
    python, script, option = WHEELS["test-command"].split()
    assert (python, option) == ("python", "--compiled")
    assert Path(script.format(project=ROOT)).is_file()


@pytest.fixture(scope="module")
def cibuildwheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_environment(tmp_path_factory.mktemp("cibuildwheel"), CIBUILDWHEEL) / "cibuildwheel"


@pytest.mark.parametrize("platform", EXPECTED)
def test_cibuildwheel_accepts_it_and_builds_each_platform(cibuildwheel: Path, platform: str) -> None:
    command = [str(cibuildwheel), "--print-build-identifiers", "--platform", platform, str(ROOT)]
    printed = subprocess.run(command, env=outside(), capture_output=True, check=True, text=True).stdout.split()
    expected = {
        f"{python.removesuffix('*')}{kind.format(machine)}"
        for python in WHEELS["build"]
        for kind in EXPECTED[platform]
        for machine in WHEELS[platform]["archs"]
    }
    assert set(printed) == expected
