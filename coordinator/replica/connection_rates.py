"""How many connections an address may open: connection_creation_rate of an ip or of the default (KIP-612). Pure.

Law
    CQ11 Of the quotas of an address its own is in force, then the default, under which each address has its own rate.
         A connection above the rate is not served and not counted; it is closed when the address may open one again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from rota.coordinator.replica.replication_throttle import ByteRate

ADDRESSES_MAX: Final = 10_000


class ConnectionRates:
    """`limits` are connections per second, by address, None for the default; `delay_ms_max` bounds a delay."""

    def __init__(self, now_ms: Callable[[], int], *, windows: int, window_ms: int, delay_ms_max: int) -> None:
        self._now_ms, self._windows, self._window_ms, self._delay_ms_max = now_ms, windows, window_ms, delay_ms_max
        self._rates: OrderedDict[str, ByteRate] = OrderedDict()  # the last used is last
        self.limits: dict[str | None, float] = {}

    def set_limit(self, address: str | None, limit: float | None) -> None:
        """Set or remove the quota of an address, of each other one for None."""
        key = None if address is None else plain_address(address)
        if limit is None:
            self.limits.pop(key, None)
        else:
            self.limits[key] = limit

    def open(self, address: str) -> int:
        """CQ11. Count a new connection; return 0, or for how many ms it is held before it is closed."""
        if not self.limits:
            return 0
        key = plain_address(address)
        limit = self.limits.get(key, self.limits.get(None))
        if limit is None:
            return 0
        rate = self._rates.pop(key, None) or self._new_rate()
        self._rates[key] = rate
        if len(self._rates) > ADDRESSES_MAX:
            self._rates.popitem(last=False)
        rate.record(1)
        wait_ms = rate.wait_ms(limit)
        if wait_ms:
            rate.record(-1)
        return wait_ms

    def _new_rate(self) -> ByteRate:
        return ByteRate(
            self._now_ms,
            windows=self._windows,
            window_ms=self._window_ms,
            full_windows_min=self._windows - 1,
            wait_ms_max=self._delay_ms_max,
        )


def plain_address(text: str) -> str:
    """Return an address in the one way that it is written; another text as it is."""
    try:
        return str(ip_address(text))
    except ValueError:
        return text
