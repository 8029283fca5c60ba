"""The connections of peers that have not finished their TLS handshake or SASL: their number and their time are bounded.

Law
    N6  Such a connection is closed when its time is over. Beyond the limit of their number the oldest of the host with
        the most is closed: a host that opens many closes its own ones, and not those of others. The addresses of one
        network of IPv6 are one host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rota.coordinator.network.owner import source_of


class Unauthenticated(Protocol):
    """A connection without a principal yet; `peer` is (host, port)."""

    peer: tuple[str, int]

    def give_up(self, why: str) -> None:
        """Close it, and log why."""


class Handshake(Unauthenticated, Protocol):
    """A handshake of TLS; with SASL it counts for its connection as well, until that has a principal."""

    connection: Unauthenticated | None


class UnauthenticatedConnections:
    """`now_ms` is elapsed time; `limits()` returns the time in ms and the number that are allowed now."""

    def __init__(self, now_ms: Callable[[], int], limits: Callable[[], tuple[int, int]]) -> None:
        self._now_ms, self._limits = now_ms, limits
        self._since_ms: dict[Unauthenticated, int] = {}  # the oldest first
        self._hosts: dict[str, dict[Unauthenticated, None]] = {}  # the same connections by source

    def __len__(self) -> int:
        return len(self._since_ms)

    def add(self, connection: Unauthenticated) -> None:
        """Begin to count the time of a connection; close one beyond the limit."""
        self._since_ms[connection] = self._now_ms()
        self._hosts.setdefault(source_of(connection.peer[0]), {})[connection] = None
        most = self._limits()[1]
        if len(self._since_ms) > most:
            self.drop(f"{most} younger connections have not authenticated either")

    def drop(self, why: str) -> bool:
        """Close the oldest of the host with the most; return whether there are any."""
        if not self._hosts:
            return False
        crowded = max(self._hosts, key=lambda host: len(self._hosts[host]))
        oldest = next(iter(self._hosts[crowded]))
        self.discard(oldest)
        oldest.give_up(why)
        return True

    def discard(self, connection: Unauthenticated) -> None:
        """The connection has a principal, or is closed."""
        if self._since_ms.pop(connection, None) is None:
            return
        host = source_of(connection.peer[0])
        del self._hosts[host][connection]
        if not self._hosts[host]:
            del self._hosts[host]

    def look(self) -> None:
        """Close the connections whose time is over."""
        now_ms, allowed_ms = self._now_ms(), self._limits()[0]
        for connection, since_ms in list(self._since_ms.items()):
            if now_ms - since_ms < allowed_ms:
                return
            self.discard(connection)
            connection.give_up(f"it has not authenticated within {allowed_ms} ms")

    def close(self) -> None:
        """Close all of them: the broker stops."""
        for connection in list(self._since_ms):
            self.discard(connection)
            connection.give_up("the broker stops")
