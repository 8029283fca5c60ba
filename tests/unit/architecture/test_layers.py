"""The modules of every package import in one direction: an exhaustive contract of layers in pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src" / "rota"


def packages() -> set[str]:
    """The packages with more than one module or package in them."""
    found = set()
    for folder in SOURCES.iterdir():
        for init in folder.resolve().rglob("__init__.py"):
            siblings = [each for each in init.parent.iterdir() if is_module(each)]
            if len(siblings) > 1:
                inside = init.parent.relative_to(folder.resolve()).parts
                found.add(".".join(("rota", folder.name, *inside)))
    return found


def is_module(path: Path) -> bool:
    return (path.suffix == ".py" and path.name != "__init__.py") or (path / "__init__.py").exists()


def test_every_package_has_exhaustive_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layered = {
        container
        for contract in contracts
        if contract["type"] == "layers" and contract.get("exhaustive")
        for container in contract["containers"]
    }
    assert len(layered) > 30
    assert packages() == layered


def test_imports_for_types_count() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert settings["exclude_type_checking_imports"] is False
