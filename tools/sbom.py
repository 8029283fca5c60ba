"""The software bill of materials, in CycloneDX's JSON: `python -m tools.sbom > deploy/sbom.cdx.json`.

It has what `pip install 'rota[EXTRAS]' -c constraints.txt` installs on Linux, with licences and dependencies from the
packages' metadata, and the JavaScript that is part of Rota. It has no time and no serial number: the same packages give
the same file.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[1]
EXTRAS: Final = ("broker", "demo", "oauth", "protobuf", "pyspark", "report", "spark", "telemetry", "testing", "tracing")
CORE: Final = "rota"
# every Python that Rota supports gives the same file: the oldest one needs the most packages
ENVIRONMENT: Final = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "sys_platform": "linux",
}
LICENSE_CHARACTERS_MAX: Final = 60  # a longer field is the text of a licence

Json = dict[str, Any]


def document() -> Json:
    """Return the bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required, optional = _requirements(project["dependencies"]), _requirements(_of_extras(project))
    graph: dict[str, list[str]] = {}
    core = _collect(required, graph)
    _collect(optional, graph)
    versions = locked_versions()
    components = [_component(name, versions[name], is_core=name in core) for name in sorted(graph)]
    direct = sorted({canonicalize_name(each.name) for each in (*required, *optional)})
    rota = _library(CORE, project["version"], {"license": {"id": project["license"]}}) | {"type": "application"}
    uplot = _uplot()
    edges = [(rota["bom-ref"], [*(_purl(name, versions[name]) for name in direct), uplot["bom-ref"]])]
    edges += [(_purl(name, versions[name]), [_purl(each, versions[each]) for each in graph[name]]) for name in graph]
    edges.append((uplot["bom-ref"], []))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": rota},
        "components": [*components, uplot],
        "dependencies": [{"ref": ref, "dependsOn": sorted(uses)} for ref, uses in sorted(edges)],
    }


def locked_versions() -> dict[str, str]:
    """Return the versions of constraints.txt by canonical name."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if "==" in line)
    return {canonicalize_name(name): version.strip() for name, version in pairs}


def _of_extras(project: Json) -> Iterator[str]:
    for extra in EXTRAS:
        yield from (each for each in project["optional-dependencies"][extra] if Requirement(each).name != CORE)


def _requirements(lines: Iterable[str], extras: Iterable[str] = ("",)) -> list[Requirement]:
    """The requirements that apply in ENVIRONMENT, with one of those extras."""
    parsed = [Requirement(line) for line in lines]
    return [
        each
        for each in parsed
        if each.marker is None or any(each.marker.evaluate(ENVIRONMENT | {"extra": extra}) for extra in extras)
    ]


def _collect(requirements: list[Requirement], graph: dict[str, list[str]]) -> set[str]:
    """Add packages, and what they require, to `graph`; return the names. Raises PackageNotFoundError."""
    found: set[str] = set()
    pending = list(requirements)
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        found.add(name)
        required = _requirements(distribution(name).requires or (), ("", *requirement.extras))
        names = {canonicalize_name(each.name) for each in required}
        if name not in graph or not names <= set(graph[name]):
            graph[name] = sorted(names | set(graph.get(name, ())))
            pending += required
    return found


def _component(name: str, version: str, *, is_core: bool) -> Json:
    scope = "required" if is_core else "optional"
    return _library(name, version, _license(name)) | {"scope": scope}


def _library(name: str, version: str, license_choice: Json) -> Json:
    purl = _purl(name, version)
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [license_choice],
        "purl": purl,
    }


def _uplot() -> Json:
    """The console's plots: a file of Rota, not a package of Python."""
    folder = ROOT / "coordinator" / "web" / "static" / "uplot"
    version = (folder / "VERSION").read_text().split()[1].rstrip(",")
    purl = f"pkg:npm/uplot@{version}"
    found = _library("uplot", version, {"license": {"id": "MIT"}})
    return found | {"bom-ref": purl, "purl": purl, "scope": "required"}


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _license(name: str) -> Json:
    metadata = distribution(name).metadata
    for expression in metadata.get_all("License-Expression") or []:
        return {"expression": expression}
    short = [each for each in metadata.get_all("License") or [] if 0 < len(each) < LICENSE_CHARACTERS_MAX]
    classifiers = [each for each in metadata.get_all("Classifier") or [] if each.startswith("License ::")]
    return {"license": {"name": (*short, *(each.rpartition(" :: ")[2] for each in classifiers), "unknown")[0]}}


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=1)
    sys.stdout.write("\n")
