"""Logs a failure that may repeat several times a second: once when it begins, and with its count when it is over."""

from __future__ import annotations

import asyncio
from typing import Any


class RepeatedWarning:
    """`log` is a logger of structlog, `event` the text of the warning."""

    __slots__ = ("_count", "_event", "_log", "_reason")

    def __init__(self, log: Any, event: str) -> None:
        self._log, self._event = log, event
        self._reason, self._count = "", 0

    def failed(self, reason: str) -> None:
        """Log the failure, unless the one before had the same reason."""
        if self._count and reason != self._reason:
            self.succeeded()
        self._count += 1
        if self._count == 1:
            self._reason = reason
            self._log.warning(self._event, reason=reason)

    def failed_by_mistake(self, mistake: Exception) -> None:
        """Log an exception that nobody expected, and give it to the loop's handler, which has its traceback."""
        self.failed(f"a mistake: {mistake!r}")
        if self._count == 1:
            asyncio.get_running_loop().call_exception_handler({"message": self._event, "exception": mistake})

    def succeeded(self) -> None:
        """The failure is over: log how often it happened, if it was more than once."""
        if self._count > 1:
            self._log.info(f"{self._event}: it is over", reason=self._reason, count=self._count)
        self._count = 0
