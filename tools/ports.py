"""Ports for servers that tests and benchmarks start, and whose number has to be known before they listen.

A port that the system picks (bind to 0) is one of those that it also gives to outgoing connections: before the server
starts another connection may get it. These are below that range, and each is handed out once until the range has been
gone through, by all processes of the user together.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

FIRST: Final = 15_000
EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL_DEFAULT: Final = 32_768


def free_port() -> int:
    """A free port, for TCP and UDP. Raises OSError when there is none."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return consecutive free ports. Raises OSError when there are none."""
    end = _end()
    with _counter().open("a+") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        start = _read(counter, end)
        for base in (*range(start, end - count + 1), *range(FIRST, start)):
            ports = list(range(base, base + count))
            if ports[-1] < end and _are_free(ports):
                _write(counter, base + count)
                return ports
    raise OSError(f"no {count} free ports in a row from {FIRST} to {end}; end some of the servers there")


def _end() -> int:
    """The first port of the range that the system gives to outgoing connections."""
    try:
        lowest = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return EPHEMERAL_DEFAULT
    return lowest if lowest > FIRST + 1000 else EPHEMERAL_DEFAULT


def _counter() -> Path:
    return Path(tempfile.gettempdir(), f"rota-ports-{os.getuid()}")


def _read(counter: IO[str], end: int) -> int:
    counter.seek(0)
    text = counter.read().strip()
    port = int(text) if text.isdigit() else FIRST
    return port if FIRST <= port < end else FIRST


def _write(counter: IO[str], port: int) -> None:
    counter.truncate(0)
    counter.write(str(port))


def _are_free(ports: list[int]) -> bool:
    with ExitStack() as held:
        try:
            for port in ports:
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    held.enter_context(socket.socket(type=kind)).bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
