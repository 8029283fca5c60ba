"""The record loops twice: as imported (compiled where a C compiler was there) and interpreted from the same file."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from rota.protocol import records
from rota.protocol.records import fast as imported

FAST = Path(records.__file__).with_name("fast.py")


def interpreted() -> ModuleType:
    """fast.py from its source, whatever is compiled beside it."""
    spec = spec_from_file_location("fast_interpreted", FAST)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["interpreted", "compiled"] if records.COMPILED else ["interpreted"])
def fast(request: pytest.FixtureRequest) -> ModuleType:
    return imported if request.param == "compiled" else interpreted()
