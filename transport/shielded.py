"""Wait for what others wait for as well: a cancellation of one of them must not cancel it."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

T = TypeVar("T")


async def shielded(future: asyncio.Future[T]) -> T:
    """Return the result of a future, or raise its error; a cancellation of this call leaves the future alone.

    As `asyncio.shield`, but for one thing: the error of a future whose waiters were all cancelled concerns nobody, and
    Python 3.14 would report it to the loop's exception handler.
    """
    if not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            future.add_done_callback(_retrieve)
            raise
    return future.result()


def _retrieve(future: asyncio.Future[Any]) -> None:
    """The error is seen, so that asyncio does not report it."""
    if not future.cancelled():
        future.exception()
