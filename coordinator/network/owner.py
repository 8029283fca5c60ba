"""The interface that a connection needs of its broker: memory, limits, routes, and callbacks for its events."""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import termios
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Protocol

from rota.coordinator.network.dispatch import ApiHandler
from rota.coordinator.network.request_memory import RequestMemoryPool

CORK: Final[int | None] = getattr(socket, "TCP_CORK", None)  # Linux: what is sent in pieces leaves in full packets
IPV6_SOURCE_BITS: Final = 64  # one subscriber has that many addresses


class Owner(Protocol):
    """`tick_queue(f)` calls `f` at the end of this turn of the event loop; `handler_of` raises UnknownApi."""

    node: Any
    tick_queue: Callable[[Callable[[], None]], Any]
    handler_of: Callable[[int], ApiHandler]
    request_memory: RequestMemoryPool
    frame_bytes_max: int
    write_buffer_bytes_max: int
    connection_bytes_max: int
    requests_max: int
    measured: Callable[[ApiHandler], ApiHandler] | None  # wraps handlers while requests are measured
    measures_latency: bool  # true if the metrics can be read (rota.http.listener)

    def connection_opened(self, connection: Any) -> None:
        """A peer connected. The owner may close the connection at once."""

    def connection_closed(self, connection: Any) -> None:
        """The connection is closed."""

    def protocol_error(self, connection: Any, why: str) -> None:
        """The connection is being closed because of an error of its peer."""

    def internal_error(self, connection: Any, why: Exception) -> None:
        """An API raised an unexpected exception."""

    def address_for(self, connection: Any) -> tuple[str, int]:
        """Return the address of this broker for this client."""

    def reader_stalled(self, connection: Any) -> None:
        """The socket's buffer is full: the peer has stopped reading."""

    def reader_resumed(self, connection: Any) -> None:
        """The peer has read on: the socket's buffer has room again."""

    def limit_unsent(self, newest: Any) -> None:
        """The unread bytes of `newest` have grown."""


def address(name: Any) -> tuple[str, int]:
    """Return (host, port) of a socket name; an IPv4 address inside an IPv6 one is shown as IPv4."""
    if not isinstance(name, tuple) or len(name) < 2:
        return "", 0
    return str(name[0]).removeprefix("::ffff:"), int(name[1])


@lru_cache(4_096)
def source_of(host: str) -> str:
    """Return what is counted as one source: an IPv4 address, or the network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv4Address):
        return host
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), IPV6_SOURCE_BITS), strict=False))


def unacknowledged_bytes(connected: Any) -> int:
    """Return the bytes in the kernel's send buffer of a TCP socket that the peer's host has not acknowledged.

    Return 0 where the kernel does not report it.
    """
    size = array.array("i", [0])
    try:
        fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, size)
    except (OSError, ValueError):  # not supported, or the socket is closed
        return 0
    return size[0]


def sends_files(transport: Any) -> bool:
    """Return whether parts of files can be sent there: over TCP in plain text, on Linux."""
    if CORK is None or transport is None or transport.get_extra_info("ssl_object") is not None:
        return False
    return hasattr(transport.get_extra_info("socket"), "setsockopt")
