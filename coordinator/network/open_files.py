"""The limit on open files of this process (`ulimit -n`), which connections and the files of logs share.

Law
    N13 Connections leave RESERVED_FILES of them, or a quarter where there are few, to the files of the logs, and one
        for each log, which keeps the file that it writes open: too many clients cannot take a partition offline. A
        quarter of the limit is theirs, however many logs there are. `rota serve` raises the limit to the highest one
        that it is allowed.
        Sockets that are no connections yet count as well: handshakes of TLS, and those that are held. The console has
        its own part.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Final

RESERVED_FILES: Final = 256  # for reads, rolled segments and their syncs (64 each at most), and what else is open
CONSOLE_CONNECTIONS_MAX: Final = 128  # with TLS as many handshakes, and as many that are being closed
MACOS_LIMIT: Final = 10_240  # OPEN_MAX: macOS says that there is no highest limit, and takes none above it


def open_files_limit() -> int:
    """Return how many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_open_files_limit() -> None:
    """Raise the limit to the highest that is allowed, as a JVM does at its start; leave it where that is refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, MACOS_LIMIT):
        if soft == hard or (soft != resource.RLIM_INFINITY and limit != resource.RLIM_INFINITY and limit <= soft):
            return
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (ValueError, OSError):
            continue
        return


def console_files(*, is_open: bool, has_tls: bool) -> int:
    """Return how many open files the console may need."""
    return is_open * CONSOLE_CONNECTIONS_MAX * (3 if has_tls else 1)


def connections_max(limit: int, console: int = 0, logs: int = 0) -> int:
    """Return how many connections there may be with this limit on open files. RLIM_INFINITY: as many as there are."""
    if limit == resource.RLIM_INFINITY:
        return (1 << 31) - 1
    left = limit - min(RESERVED_FILES, limit // 4) - min(console, limit // 2)
    return max(left - logs, min(left, limit // 4))


class AcceptedSockets:
    """N13. The sockets that are accepted and no connections yet; `left()` is how many open files they may have.

    `make_room(listener)` closes a connection for one of that listener; it returns False when there is none to close.
    """

    def __init__(
        self, left: Callable[[], int] = lambda: (1 << 31) - 1, make_room: Callable[[str], bool] = lambda listener: False
    ) -> None:
        self._left, self._make_room, self._count = left, make_room, 0

    def __len__(self) -> int:
        return self._count

    def add(self) -> bool:
        """Count one more; return False, and do not, where no file is left."""
        if self._count >= self._left():
            return False
        self._count += 1
        return True

    def add_in_place(self, listener: str) -> bool:
        """N14. Count one more for which a connection is closed; return False, and do not, where none is."""
        is_closed = self._make_room(listener)
        self._count += is_closed
        return is_closed

    def remove(self) -> None:
        """One is closed, or a connection."""
        self._count -= 1
