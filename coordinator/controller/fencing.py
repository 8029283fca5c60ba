"""When the controller fences a broker that is reported dead. Pure: times come in.

A first report counts at once. A broker that registers again each time it was fenced is slow or badly connected, not
dead: later reports count only after a growing time. The session of a broker that is really dead
expires meanwhile, and with it its registration.

Laws
    FN1  The first report of a broker counts at once; the next one within `CALM_MS` has to last `HOLD_MS`, then twice
         as long each time, up to `HOLD_MS_MAX`.
    FN2  A report counts for one registration only, never for a later one of the broker.
    FN3  A broker that was itself cut off believes no report, of its own or of others, for `HOLD_MS` after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HOLD_MS: Final = 1_000
HOLD_MS_MAX: Final = 30_000
CALM_MS: Final = 120_000  # a broker that was not fenced for so long is trusted again


class Fencing:
    """The brokers that are reported dead, and how often each was fenced."""

    __slots__ = ("_believes_ms", "_fenced", "_reports")

    def __init__(self) -> None:
        self._reports: dict[int, tuple[int, int]] = {}  # broker: (its registration's epoch, when the report counts)
        self._fenced: dict[int, tuple[int, int]] = {}  # broker: (when it was fenced last, the hold of the next report)
        self._believes_ms = 0  # no report counts before that time

    def report_dead(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """Note that the broker, in the registration of that epoch, seems dead."""
        known = self._reports.get(broker_id)
        if known is None or known[0] < epoch:
            self._reports[broker_id] = epoch, now_ms + self._hold_ms(broker_id, now_ms)

    def was_cut_off(self, now_ms: int) -> None:
        """FN3. Note that this broker could not reach the cluster: those that it reported dead may be alive."""
        self._believes_ms = now_ms + HOLD_MS

    def report_alive(self, broker_id: int) -> None:
        """Forget the report: the broker has answered."""
        self._reports.pop(broker_id, None)

    def due(self, epochs: Mapping[int, int], now_ms: int) -> frozenset[int]:
        """Return the brokers to fence now, of those that are registered with these epochs."""
        return frozenset(
            broker_id
            for broker_id, (epoch, at_ms) in self._reports.items()
            if max(at_ms, self._believes_ms) <= now_ms and epochs.get(broker_id) == epoch
        )

    def next_ms(self, now_ms: int) -> int | None:
        """Return when the next report counts; None when none is waiting."""
        times_ms = (max(at_ms, self._believes_ms) for _, at_ms in self._reports.values())
        return min((at_ms for at_ms in times_ms if at_ms > now_ms), default=None)

    def fenced(self, broker_id: int, now_ms: int) -> None:
        """Note that the broker's registration was deleted, and forget the report."""
        self._reports.pop(broker_id, None)
        hold_ms = self._hold_ms(broker_id, now_ms)
        self._fenced[broker_id] = now_ms, min(max(2 * hold_ms, HOLD_MS), HOLD_MS_MAX)

    def _hold_ms(self, broker_id: int, now_ms: int) -> int:
        at_ms, hold_ms = self._fenced.get(broker_id, (now_ms, 0))
        return hold_ms if now_ms - at_ms < CALM_MS else 0


class Answers:
    """FN3. The longest time without an answer of the store since the first report that waits to be looked at."""

    __slots__ = ("_longest_ms", "_since_ms")

    def __init__(self) -> None:
        self._longest_ms, self._since_ms = 0, None

    _since_ms: int | None

    def await_one(self, now_ms: int) -> None:
        """A report came, or the store is asked."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def received(self, now_ms: int) -> None:
        """The store has answered a change, which may be another one."""
        if self._since_ms is not None:
            self._longest_ms, self._since_ms = max(self._longest_ms, now_ms - self._since_ms), now_ms

    def take_longest_ms(self, now_ms: int, *, is_over: bool) -> int:
        """Return the longest time, and count from now on, or not until the next report if it `is_over`."""
        longest_ms, self._longest_ms = self._longest_ms, 0
        self._since_ms = None if is_over else now_ms
        return longest_ms
