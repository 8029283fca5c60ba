"""Watches for objects of ours that only the garbage collector could take: the broker lets it look seldom."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_litter() -> Iterator[None]:
    """What happens inside must leave no cycles of objects and functions of ours."""
    gc.collect()
    gc.disable()
    try:
        yield
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = [repr(item) for item in gc.garbage if _is_ours(item)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not found


def _is_ours(item: object) -> bool:
    return str(getattr(item, "__module__", "")).startswith("rota.")
