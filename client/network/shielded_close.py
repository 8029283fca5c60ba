"""Runs a coroutine to its end even when the caller is cancelled: closing tasks and connections.

Laws
    Work that has begun is completed; the cancellation is raised after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from rota.transport.shielded import shielded


async def run_shielded(work: Coroutine[Any, Any, None], name: str) -> None:
    """Run `work` as a task and wait for it. Raises what `work` raises.

    A caller that is cancelled still waits for `work`, then raises CancelledError. A caller that is cancelled twice
    does not wait any longer; `work` goes on by itself.
    """
    task = asyncio.get_running_loop().create_task(work, name=name)
    try:
        await shielded(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
