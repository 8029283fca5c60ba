"""The sdist and the wheel of this tree, built once for all tests of the folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.packaging.source_tree import BUILD, COMPILED, build, copy_of_sources, wheel_of


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_sources(tmp_path_factory.mktemp("builds") / "tree")


@pytest.fixture(scope="session")
def sdist(tree: Path) -> Path:
    return build(BUILD, tree, PYTHONHASHSEED="1")


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the Python that runs the tests; in the soak compiled, where there is a compiler."""
    return wheel_of(sdist, tmp_path_factory.mktemp("wheel"), sys.executable, ROTA_COMPILE="1" if COMPILED else "0")
