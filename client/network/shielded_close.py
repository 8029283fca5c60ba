"""What is done to its end even when whoever waits for it is cancelled: letting go of tasks and connections.

Laws
    What was begun is done; the cancellation goes on after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def to_its_end(work: Coroutine[Any, Any, None], name: str) -> None:
    """Raises what `work` raises. Who is cancelled here waits for it all the same; who is cancelled twice does not, and
    it goes on by itself."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
