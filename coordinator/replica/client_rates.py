"""How much clients may produce, fetch or make the broker work: a rate for each entity with a quota. Pure.

Law
    CQ6 What was recorded is above the rate over the last windows by no more than one request, if the client waits as
        long as it is throttled. The windows without requests before the first one count as well: a burst.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rota.coordinator.metadata.client_quotas import Entity
from rota.coordinator.replica.entity_buckets import EntityBuckets
from rota.coordinator.replica.replication_throttle import ByteRate

THROTTLE_MS_MAX: Final = (1 << 31) - 1  # what throttle_time_ms of a response can say


class ClientRates:
    """The rates of what clients use: bytes, or ns of the loop. `limits` are quotas per second; they may change."""

    __slots__ = ("_entities", "_throttle_ms_max", "_window_ms", "_windows", "limits")

    def __init__(
        self, now_ms: Callable[[], int], *, windows: int, window_ms: int, throttle_ms_max: int = THROTTLE_MS_MAX
    ) -> None:
        self._windows, self._window_ms, self._throttle_ms_max = windows, window_ms, throttle_ms_max
        self._entities = EntityBuckets(now_ms, windows * window_ms, self._new_rate)
        self.limits: dict[Entity, float] = self._entities.limits

    def __len__(self) -> int:
        return len(self._entities)

    def record(self, user: str, client_id: str, size: int) -> int:
        """Count what a client used; return for how many ms it is throttled."""
        found = self._entities.find(user, client_id)
        if found is None:
            return 0
        limit, rate = found
        rate.record(size)
        return rate.wait_ms(limit)

    def admit(self, user: str, client_id: str, size_bytes: int) -> int:
        """Count bytes that are sent unless the client is throttled; return for how many ms it is.

        After windows without any bytes a response is sent whatever its size: else a large batch would never be.
        """
        found = self._entities.find(user, client_id)
        if found is None:
            return 0
        limit, rate = found
        was_empty = rate.is_empty
        rate.record(size_bytes)
        wait_ms = rate.wait_ms(limit)
        if not wait_ms or was_empty:
            return 0
        rate.record(-size_bytes)
        return wait_ms

    def burst_bytes(self, user: str, client_id: str) -> int | None:
        """Return the largest response that the client's quota allows at once; None without a quota."""
        limit = self._entities.limit(user, client_id)
        if limit is None:
            return None
        return max(int(limit[0] * max(self._windows - 1, 1) * self._window_ms / 1_000), 1)

    def _new_rate(self) -> ByteRate:
        return ByteRate(
            lambda: self._entities.at_ms,
            windows=self._windows,
            window_ms=self._window_ms,
            full_windows_min=self._windows - 1,
            wait_ms_max=self._throttle_ms_max,
        )
