"""Modules that a library imports for what is seldom used: they are loaded when something of them is.

A broker pays for the imports of its libraries with memory and at its start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class LoadedLater(ModuleType):
    """Stands for the module of its name until one of its attributes is used."""

    def __getattr__(self, name: str) -> Any:
        _remove(self)
        return getattr(import_module(self.__name__), name)


@contextmanager
def loaded_later(*names: str) -> Iterator[None]:
    """Let imports of these modules get a LoadedLater; those that are loaded already stay as they are."""
    modules = [LoadedLater(name) for name in names if name not in sys.modules]
    sys.modules.update({module.__name__: module for module in modules})
    try:
        yield
    finally:
        for module in modules:
            _remove(module)


def _remove(module: ModuleType) -> None:
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]
