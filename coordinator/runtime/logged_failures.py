"""Which failures of the logs of shards are written to the broker's log. Pure.

Law
    A1  A failure is written once for each cause. It is the same one while it comes again within AGAIN_MS: on a full
        disk a shard is loaded, and fails with its next write, again and again.
"""

from __future__ import annotations

from typing import Final

AGAIN_MS: Final = 600_000
CAUSES_MAX: Final = 16  # of one shard: a cause may name another file each time


class LoggedFailures:
    """The causes that are written, by shard."""

    __slots__ = ("_causes", "_last_ms")

    def __init__(self) -> None:
        self._causes: dict[int, set[str]] = {}
        self._last_ms: dict[int, int] = {}

    def is_new(self, shard: int, cause: str, now_ms: int) -> bool:
        """Note a failure; return whether it is to be written."""
        causes = self._causes.setdefault(shard, set())
        if now_ms - self._last_ms.get(shard, now_ms) >= AGAIN_MS or len(causes) >= CAUSES_MAX:
            causes.clear()
        self._last_ms[shard] = now_ms
        is_new = cause not in causes
        causes.add(cause)
        return is_new
