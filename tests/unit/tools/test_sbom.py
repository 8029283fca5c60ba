"""deploy/sbom.cdx.json: it is what the tool writes now, and complete."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.sbom import EXTRAS, document, locked_versions

ROOT = Path(__file__).parents[3]
SBOM: dict[str, Any] = json.loads((ROOT / "deploy" / "sbom.cdx.json").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BY_NAME = {each["name"]: each for each in SBOM["components"]}
FOR_DEVELOPERS = {"docs", "test"}


def test_the_sbom_file_equals_the_output_of_the_tool() -> None:
    assert document() == SBOM, "python -m tools.sbom > deploy/sbom.cdx.json"


def test_it_has_every_package_that_users_install_in_its_locked_version() -> None:
    extras = PROJECT["optional-dependencies"]
    assert {*EXTRAS} | FOR_DEVELOPERS == {*extras}
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    names = {canonicalize_name(Requirement(line).name) for line in lines} - {"rota"}
    assert names <= BY_NAME.keys()
    assert {name: each["version"] for name, each in BY_NAME.items() if name != "uplot"}.items() <= (
        locked_versions().items()
    )
    core = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert {name for name, each in BY_NAME.items() if each["scope"] == "required"} == core | {"uplot"}


def test_each_component_has_a_licence_and_its_dependencies_are_components() -> None:
    references = {SBOM["metadata"]["component"]["bom-ref"], *(each["bom-ref"] for each in SBOM["components"])}
    assert len(references) == 1 + len(SBOM["components"])
    assert {each["ref"] for each in SBOM["dependencies"]} == references
    assert {used for each in SBOM["dependencies"] for used in each["dependsOn"]} <= references
    assert {"license": {"name": "unknown"}} not in [each["licenses"][0] for each in SBOM["components"]]


def test_the_javascript_of_the_console_is_in_it() -> None:
    script = next((ROOT / "coordinator" / "web" / "static" / "uplot").glob("*.js")).read_text()
    assert f"(v{BY_NAME['uplot']['version']})" in script
