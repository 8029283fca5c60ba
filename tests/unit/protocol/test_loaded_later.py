from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rota.protocol.loaded_later import LoadedLater, loaded_later

NAME = "seldom_used_module"


@pytest.fixture(autouse=True)
def seldom_used_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{NAME}.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop(NAME, None)


def import_it() -> Any:
    import seldom_used_module  # type: ignore[import-not-found]

    return seldom_used_module


def test_a_module_is_loaded_when_something_of_it_is_used() -> None:
    with loaded_later(NAME):
        kept = import_it()
    assert NAME not in sys.modules
    assert isinstance(kept, LoadedLater)
    assert kept.answer == 42
    assert not isinstance(import_it(), LoadedLater)
    with pytest.raises(AttributeError, match="question"):
        _ = kept.question


def test_what_is_used_at_once_is_loaded_at_once() -> None:
    with loaded_later(NAME):
        assert import_it().answer == 42
        loaded = import_it()
    assert not isinstance(loaded, LoadedLater)
    assert sys.modules[NAME] is loaded


def test_a_module_that_is_loaded_stays() -> None:
    loaded = import_it()
    with loaded_later(NAME):
        assert import_it() is loaded
    assert import_it() is loaded
