"""Calls at the end of the loop's turn: writes first, then the replies that waited for them, in one go.

Laws
    Calls run in the order in which they were added, each once; a call that fails harms no other.
    A call that is added by a call runs in the same turn, a call added by that one in the next: the loop always gets
    back to its sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Call = Callable[[], object]

ROUNDS_PER_TURN: Final = 2  # a loop's own call_soon has one: a reply would wait for another look at all sockets


class TickQueue:
    """`queue(call)` adds a call. `call_soon` and `failed` (given a context as loops give it) are the loop's."""

    __slots__ = ("_call_soon", "_calls", "_failed", "_is_due")

    def __init__(self, call_soon: Callable[[Call], object], failed: Callable[[dict[str, Any]], object]) -> None:
        self._call_soon, self._failed = call_soon, failed
        self._calls: list[Call] = []
        self._is_due = False

    def __call__(self, call: Call) -> None:
        """Run `call` at the end of this turn; also when it is added by such a call."""
        self._calls.append(call)
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        for _ in range(ROUNDS_PER_TURN):
            calls, self._calls = self._calls, []
            for call in calls:
                try:
                    call()
                except Exception as why:  # noqa: BLE001  # as a loop does with a callback that fails
                    self._failed({"message": "a call at the end of a turn failed", "exception": why})
        self._is_due = bool(self._calls)
        if self._is_due:
            self._call_soon(self._turn)
