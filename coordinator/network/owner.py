"""What a connection needs of the broker around it: memory, limits, routes, and callbacks for what happens to it."""

from __future__ import annotations

import array
import fcntl
import termios
from collections.abc import Callable
from typing import Any, Protocol

from rota.coordinator.network.dispatch import ApiHandler
from rota.coordinator.network.request_memory import RequestMemoryPool


class Owner(Protocol):
    """`tick_queue` calls at the end of this turn of the loop; `handler_of` raises UnknownApi."""

    node: Any
    tick_queue: Callable[[Callable[[], None]], Any]
    handler_of: Callable[[int], ApiHandler]
    request_memory: RequestMemoryPool
    frame_bytes_max: int
    write_buffer_bytes_max: int
    connection_bytes_max: int
    requests_max: int
    measures_latency: bool  # where somebody can read it (rota.http.listener)

    def connection_opened(self, connection: Any) -> None:
        """A peer connected; it may be closed at once."""

    def connection_closed(self, connection: Any) -> None:
        """The connection is closed."""

    def protocol_error(self, connection: Any, why: str) -> None:
        """The connection is being closed because of its peer."""

    def internal_error(self, connection: Any, why: Exception) -> None:
        """An API raised something unforeseen."""

    def address_for(self, connection: Any) -> tuple[str, int]:
        """Return the address that this client shall use."""

    def reader_stalled(self, connection: Any) -> None:
        """The peer reads nothing more."""

    def reader_resumed(self, connection: Any) -> None:
        """The peer has read what was sent."""

    def limit_unsent(self, newest: Any) -> None:
        """More is held for this connection than before."""


def address(name: Any) -> tuple[str, int]:
    """Return (host, port) of a socket name; an IPv4 address inside an IPv6 one is shown as IPv4."""
    if not isinstance(name, tuple) or len(name) < 2:
        return "", 0
    return str(name[0]).removeprefix("::ffff:"), int(name[1])


def unacknowledged_bytes(connected: Any) -> int:
    """Return how much the kernel keeps of what was written to a TCP socket, until its peer's machine has taken it.

    0 where the kernel does not tell.
    """
    size = array.array("i", [0])
    try:
        fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, size)
    except (OSError, ValueError):  # not told, or closed
        return 0
    return size[0]
