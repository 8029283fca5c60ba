"""Reports the state of the broker to systemd: sd_notify(3), for units of Type=notify and with WatchdogSec=.

systemd gives a service the address of a datagram socket and the watchdog's time in environment variables. The service
sends lines NAME=VALUE. Without the variables nothing is sent.

Laws
    SM1 READY=1 is sent when clients can connect, STOPPING=1 before connections close.
    SM2 WATCHDOG=1 is sent by a timer of the event loop: a loop that stands still sends none.
    SM3 A service manager that cannot be reached neither stops nor blocks the broker.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import MutableMapping
from typing import Final

import structlog

log = structlog.get_logger("rota.serve")

VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
RETRY_S: Final = 0.1  # the socket's queue is full, as while systemd reads its units again
WAITING_MAX: Final = 16  # messages
WATCHDOG: Final = "WATCHDOG=1"


class ServiceManager:
    """The service manager that started this process, or none. Used on a running event loop."""

    def __init__(self, address: str = "", watchdog_us: int = 0) -> None:
        """`address` is that of the socket, `@` for the abstract namespace; empty sends nothing.

        `watchdog_us` is the silence after which the manager ends the service, in microseconds; 0 for no watchdog.
        """
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._interval_s = watchdog_us / 2 / 1_000_000
        self._socket = _open_socket() if address else None
        self._is_stopping = False
        self._waiting: list[str] = []
        self._retry: asyncio.TimerHandle | None = None
        self._watchdog: asyncio.TimerHandle | None = None

    @classmethod
    def from_environment(cls, variables: MutableMapping[str, str]) -> ServiceManager:
        """Return the manager of the variables, and remove them: processes that this one starts are not the service."""
        address, usec, pid = (variables.pop(name, "") for name in VARIABLES)
        if address and address[0] not in "/@":
            log.warning("NOTIFY_SOCKET is ignored: expected a path or @NAME", address=address)
            address = ""
        if usec and not usec.isdecimal():
            log.warning("WATCHDOG_USEC is ignored: expected a number of microseconds", value=usec)
            usec = ""
        is_for_this_process = pid in ("", str(os.getpid()))
        return cls(address, int(usec or 0) if is_for_this_process else 0)

    def starting(self) -> None:
        """Show in `systemctl status` that the broker opens its data."""
        self._send("STATUS=Starting: opening the data")

    def ready(self, status: str) -> None:
        """Report that clients can connect; from now on the watchdog is fed. Nothing is sent once the broker stops."""
        if self._is_stopping:
            return
        self._send(f"READY=1\nSTATUS={status}")
        if self._socket is not None and self._interval_s:
            self._feed_watchdog()

    def stopping(self) -> None:
        """Report that the broker stops."""
        self._is_stopping = True
        self._send("STOPPING=1\nSTATUS=Stopping: finishing requests, handing leaderships over")

    def close(self) -> None:
        """Send nothing more."""
        for timer in (self._retry, self._watchdog):
            if timer is not None:
                timer.cancel()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _feed_watchdog(self) -> None:
        if WATCHDOG not in self._waiting:
            self._send(WATCHDOG)
        self._watchdog = asyncio.get_running_loop().call_later(self._interval_s, self._feed_watchdog)

    def _send(self, message: str) -> None:
        if self._socket is not None and len(self._waiting) < WAITING_MAX:
            self._waiting.append(message)
            if self._retry is None:
                self._send_waiting()

    def _send_waiting(self) -> None:
        """Send the messages in order; the rest later, when the socket's queue is full."""
        self._retry = None
        while self._waiting and self._socket is not None:
            try:
                self._socket.sendto(self._waiting[0].encode(), self._address)
            except BlockingIOError:
                self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._send_waiting)
                return
            except OSError as why:
                log.warning("The service manager cannot be reached", address=self._address, reason=why.strerror)
            del self._waiting[0]


def _open_socket() -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    opened.setblocking(False)
    return opened


__all__ = ["RETRY_S", "ServiceManager"]
