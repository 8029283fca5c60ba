"""How fast throttled replicas may be copied: a quota in bytes per second, and which replicas it is for (KIP-73). Pure.

Laws
    RQ1 The quota is exceeded while the bytes that were recorded in the last windows, divided by the time since the
        oldest of these windows began (one window at least), are more than the rate. Source: Kafka's SimpleRate.
    RQ2 A replica that is in sync is never held back; its bytes count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

WAIT_MS_MAX: Final = 1_000  # until the rate, which may have been changed, is looked at again


class ByteRate:
    """Counts bytes in windows of `window_ms`, the last `windows` of which matter; `now_ms` is the clock.

    With `full_windows_min` the bytes are measured over that many windows at least, as Kafka's Rate does. A wait is
    `wait_ms_max` at most.
    """

    __slots__ = ("_full_windows_min", "_now_ms", "_samples", "_wait_ms_max", "_window_ms", "_windows")

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        windows: int = 11,
        window_ms: int = 1_000,
        full_windows_min: int = 0,
        wait_ms_max: int = WAIT_MS_MAX,
    ) -> None:
        self._now_ms, self._windows, self._window_ms = now_ms, windows, window_ms
        self._full_windows_min, self._wait_ms_max = full_windows_min, wait_ms_max
        self._samples: deque[tuple[int, int]] = deque()  # (when the window began, bytes)

    def record(self, size_bytes: int) -> None:
        """Count bytes that were copied now."""
        now_ms, samples = self._now_ms(), self._samples
        self._forget(now_ms)
        if samples and now_ms - samples[-1][0] < self._window_ms:
            began_ms, before = samples.pop()
            samples.append((began_ms, before + size_bytes))
        else:
            samples.append((now_ms, size_bytes))

    @property
    def is_empty(self) -> bool:
        """Whether the last windows have no bytes."""
        return self._measure()[0] == 0

    def is_exceeded(self, bytes_per_second: int) -> bool:
        """RQ1. Return whether more than that was copied."""
        return self._wait_ms(bytes_per_second) > 0

    def wait_ms(self, bytes_per_second: float) -> int:
        """Return how long nothing may be copied; 0 if the quota is not exceeded, `wait_ms_max` at most."""
        return self._wait_ms(bytes_per_second)

    def _wait_ms(self, bytes_per_second: float) -> int:
        total_bytes, elapsed_ms = self._measure()  # once: the clock goes on
        if 1_000 * total_bytes <= bytes_per_second * elapsed_ms:
            return 0
        if bytes_per_second <= 0:
            return self._wait_ms_max
        return int(min(-(-1_000 * total_bytes // bytes_per_second) - elapsed_ms, self._wait_ms_max))

    def _forget(self, now_ms: int) -> None:
        """Drop the windows that no longer count, so that there are never more than `windows`."""
        samples = self._samples
        while samples and now_ms - samples[0][0] >= self._windows * self._window_ms:
            samples.popleft()

    def _measure(self) -> tuple[int, int]:
        """Return the bytes of the last windows and the time that they are measured over."""
        now_ms, samples = self._now_ms(), self._samples
        self._forget(now_ms)
        if not samples:
            return 0, self._window_ms
        elapsed_ms, window_ms = now_ms - samples[0][0], self._window_ms
        padding_ms = max(self._full_windows_min - elapsed_ms // window_ms, 0) * window_ms
        return sum(size for _, size in samples), max(elapsed_ms + padding_ms, window_ms)


class ReplicationThrottle:
    """The quota of a broker as a leader or as a follower.

    `rate` returns the bytes per second, None for no limit. `is_throttled` returns whether the replica of a partition
    (topic name, index) on this broker is one of those that the topic's config lists.
    """

    __slots__ = ("_is_throttled", "_quota", "_rate")

    def __init__(
        self, quota: ByteRate, rate: Callable[[], int | None], is_throttled: Callable[[str, int], bool]
    ) -> None:
        self._quota, self._rate, self._is_throttled = quota, rate, is_throttled

    def record(self, topic: str, index: int, size_bytes: int) -> None:
        """Count bytes of this partition, if it is throttled."""
        if self._rate() is not None and self._is_throttled(topic, index):
            self._quota.record(size_bytes)

    def is_held_back(self, topic: str, index: int, *, is_in_sync: bool) -> bool:
        """RQ2. Return whether nothing of this partition may be copied now to a replica that is in sync, or is not."""
        rate = self._rate()
        if rate is None or is_in_sync:
            return False
        return self._is_throttled(topic, index) and self._quota.is_exceeded(rate)

    @property
    def wait_ms(self) -> int:
        """How long a replica that is held back should wait."""
        rate = self._rate()
        return 0 if rate is None else self._quota.wait_ms(rate)
