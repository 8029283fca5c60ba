"""The record loops twice: as imported (compiled where a C compiler was there) and interpreted from the same files."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest

from rota.protocol import records
from rota.protocol.records import consumed as imported_consumed
from rota.protocol.records import fast as imported_fast
from rota.protocol.records import produced as imported_produced

VARIANTS = ["interpreted", "compiled"] if records.COMPILED else ["interpreted"]


def interpreted(name: str) -> ModuleType:
    """The file `name`.py from its source, whatever is compiled beside it."""
    spec = spec_from_file_location(f"{name}_interpreted", Path(records.__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=VARIANTS)
def fast(request: pytest.FixtureRequest) -> ModuleType:
    return imported_fast if request.param == "compiled" else interpreted("fast")


@pytest.fixture(params=VARIANTS)
def consumed(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "compiled":
        return imported_consumed
    with patch.dict(sys.modules, {imported_fast.__name__: interpreted("fast")}):
        return interpreted("consumed")


@pytest.fixture(params=VARIANTS)
def produced(request: pytest.FixtureRequest) -> ModuleType:
    return imported_produced if request.param == "compiled" else interpreted("produced")
