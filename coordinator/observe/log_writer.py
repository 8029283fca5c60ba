"""Writes log lines in a thread, so that a pipe that is not read does not block the broker.

Laws
    LG1  `write` never waits: lines beyond QUEUE_BYTES_MAX are dropped and counted.
    LG2  A line says how many were dropped, as soon as lines can be written again.
    LG3  `close` waits no longer than its timeout for what is still to be written.
    LG4  Lines are written together, GATHER_S after the first of them or at `close`: a thread that wakes up for each
         line takes the interpreter from the event loop as often.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Final

QUEUE_BYTES_MAX: Final = 4 << 20  # of lines that are not written yet
GATHER_S: Final = 0.01


class LogWriter:
    """Lines in, bytes out to a file descriptor. Use it from any thread.

    `report` makes the line with the number of dropped lines. `dropped_lines` counts all of them.
    """

    def __init__(self, fd: int, report: Callable[[int], str], *, bytes_max: int = QUEUE_BYTES_MAX) -> None:
        self.dropped_lines = 0
        self._fd, self._report, self._bytes_max = fd, report, bytes_max
        self._lock = threading.Lock()
        self._lines: list[bytes] = []
        self._queued_bytes = 0  # also those that the thread is writing
        self._unreported_lines = 0
        self._has_work = threading.Event()
        self._closing = threading.Event()
        # a daemon: a process ends although its log cannot be written
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Queue one line, or several that `\n` parts; drop those for which too much is queued already."""
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._lock:
            if self._queued_bytes + len(data) > self._bytes_max:
                data = self._shortened(data)
            if data:
                self._lines.append(data)
                self._queued_bytes += len(data)
        if not self._has_work.is_set():
            self._has_work.set()

    def _shortened(self, data: bytes) -> bytes:
        """Return the lines that fit in the queue, and count the others."""
        end = data.rfind(b"\n", 0, self._bytes_max - self._queued_bytes) + 1
        count = data.count(b"\n", end)
        self.dropped_lines += count
        self._unreported_lines += count
        return data[:end]

    def close(self, timeout_s: float) -> bool:
        """Write the queued lines within `timeout_s`; return whether all are written. Queue no line afterwards."""
        self._closing.set()
        self._has_work.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._has_work.wait()
            self._closing.wait(GATHER_S)
            self._has_work.clear()
            self._write_queued()
        while self._write_queued():
            pass

    def _write_queued(self) -> bool:
        """Write all that is queued; return whether that was anything."""
        with self._lock:
            lines, self._lines = self._lines, []
            dropped, self._unreported_lines = self._unreported_lines, 0
        report = [self._report(dropped).encode() + b"\n"] if dropped else []
        if lines or report:
            _write_all(self._fd, b"".join(lines + report))
            with self._lock:
                self._queued_bytes -= sum(map(len, lines))
        return bool(lines or report)


def _write_all(fd: int, data: bytes) -> None:
    """Wait for the descriptor as long as it takes. Its errors have nowhere to be reported."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # another process that shares the descriptor made it non-blocking
            select.select([], [fd], [])
        except OSError:
            return
