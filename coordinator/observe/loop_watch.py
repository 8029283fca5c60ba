"""Detects stalls of the event loop, and the functions that ran during them.

A timer of the loop notes the time every TICK_SECONDS. A thread compares: when the note is older than STALL_SECONDS, it
reads the stack of the loop's thread. When the loop runs again, the stall is counted and logged with that stack.

Law
    OB2 A stall of the loop above STALL_SECONDS is counted once and logged with the functions that ran, the innermost
        first. Lines are at least LOG_SECONDS apart; those between are counted.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from types import FrameType
from typing import Final

import structlog

log = structlog.get_logger("rota.loop")

TICK_SECONDS: Final = 0.02
STALL_SECONDS: Final = 0.05
LOG_SECONDS: Final = 1.0
WAITS: Final = ("select", "poll")  # the loop itself waits: the process had no processor, or the timer is late
FRAMES_MAX: Final = 6  # of the stack that is logged


class LoopWatch:
    """Watches the loop that runs when it is started. `stalls` and `stalled_seconds` only grow."""

    def __init__(self) -> None:
        self.stalls = 0
        self.stalled_seconds = 0.0
        self.ticks = 0  # grows while the loop turns
        self._noted = 0.0
        self._seen = ""  # the stack of the stall that goes on
        self._logged, self._unlogged = float("-inf"), 0
        self._stopping = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch the running loop."""
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        self._noted = time.monotonic()
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)
        self._thread = threading.Thread(target=self._watch, name="rota-loop-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopping.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.join()

    def _tick(self) -> None:
        now = time.monotonic()
        late, self._noted = now - self._noted - TICK_SECONDS, now
        self.ticks += 1
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)
        if late > STALL_SECONDS:
            self._stalled(now, late)
        self._seen = ""

    def _stalled(self, now: float, seconds: float) -> None:
        self.stalls += 1
        self.stalled_seconds += seconds
        if now - self._logged < LOG_SECONDS:
            self._unlogged += 1
            return
        ran = self._seen or "unknown: no Python function; the process may not have had a processor"
        log.warning("Event loop stood still", stalled_ms=round(seconds * 1000), ran=ran, not_logged=self._unlogged)
        self._logged, self._unlogged = now, 0

    def _watch(self) -> None:
        """Run in the thread: watch the loop."""
        while not self._stopping.wait(STALL_SECONDS / 2):
            if time.monotonic() - self._noted > STALL_SECONDS and not self._seen:
                frame = sys._current_frames().get(self._loop_thread)
                if frame is not None and frame.f_code.co_name not in WAITS:
                    self._seen = stack_text(frame)


def stack_text(frame: FrameType) -> str:
    """Return `function (file:line)` of the innermost frames."""
    shown: list[str] = []
    at: FrameType | None = frame
    while at is not None and len(shown) < FRAMES_MAX:
        code = at.f_code
        shown.append(f"{code.co_qualname} ({'/'.join(code.co_filename.rsplit('/', 2)[-2:])}:{at.f_lineno})")
        at = at.f_back
    return " < ".join(shown)
