"""The counters of the broker: plain ints, which `/metrics` reads when it is scraped.

Laws
    OB1 Counting on the path of a request is the addition of ints; nothing is formatted, locked or kept per client.
    The latency of a request is the time from the reading of its bytes to the writing of its reply. Replies that leave
    in one write have one latency.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Final

LATENCY_SHIFT: Final = 16  # the first bucket ends at 2**16 ns, 65.5 µs
LATENCY_BUCKETS: Final = 21  # each ends at twice the one before; the last but one at 34 s, the last has no end

LATENCY_BITS: Final = 64 - LATENCY_SHIFT  # a latency has at most 63 bits

now_ns = perf_counter_ns


class ApiCounters:
    """One API: how many requests ended in each bucket of latency, and how many errors of each code were answered."""

    __slots__ = ("_by_bits", "errors", "total_ns")

    def __init__(self) -> None:
        self._by_bits = [0] * LATENCY_BITS
        self.total_ns = 0
        self.errors: dict[int, int] = {}

    def add(self, count: int, latency_ns: int) -> None:
        """Count requests that ended with this latency."""
        self._by_bits[(latency_ns >> LATENCY_SHIFT).bit_length()] += count
        self.total_ns += count * latency_ns

    def add_error(self, code: int) -> None:
        """Count an error that was answered."""
        self.errors[code] = self.errors.get(code, 0) + 1

    @property
    def buckets(self) -> list[int]:
        """The number of requests in each bucket."""
        last = LATENCY_BUCKETS - 1
        return [*self._by_bits[:last], sum(self._by_bits[last:])]

    @property
    def requests(self) -> int:
        """The number of requests that have ended."""
        return sum(self._by_bits)


def bucket_ends_seconds() -> list[float]:
    """Return the upper end of each bucket but the last, in seconds."""
    return [(1 << (LATENCY_SHIFT + bucket)) / 1e9 for bucket in range(LATENCY_BUCKETS - 1)]


REBALANCES_MAX: Final = 10_000  # under way at one time; those beyond are counted without a duration


class RebalanceCounters:
    """Rebalances of all groups by cause: how many began, and how long those that ended took."""

    def __init__(self) -> None:
        self.began_count: dict[str, int] = {}
        self.ended: dict[str, ApiCounters] = {}
        self._under_way: dict[str, tuple[str, int]] = {}

    def began(self, group_id: str, cause: str) -> None:
        """A rebalance begins; one that is under way ends with it. `cause` is one of a few words."""
        self.ended_now(group_id)
        self.began_count[cause] = self.began_count.get(cause, 0) + 1
        if len(self._under_way) < REBALANCES_MAX:
            self._under_way[group_id] = cause, now_ns()

    def ended_now(self, group_id: str) -> None:
        """The group's members have assignments, or the group is empty."""
        cause, began_ns = self._under_way.pop(group_id, (None, 0))
        if cause is not None:
            self.ended.setdefault(cause, ApiCounters()).add(1, now_ns() - began_ns)
