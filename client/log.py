"""The client's log: structlog's events with fields, handed to the standard library's `logging`.

A library does not choose where an application's log goes: everything below the logger `rota.client` follows the
application's own logging configuration, and is silent by default below WARNING.

Laws
    A line reads `event  field=value field=value`, names the place where it was written, and has the traceback of its
    `exc_info` as any other record of `logging`.
    Nothing is made into text that no handler wants.
    structlog's configuration, which is the application's, changes nothing.
    structlog is imported for the first line that a handler wants: its import takes a third of that of the client.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_LEVELS: Final = {
    "exception": logging.ERROR,
    **{name.lower(): level for name, level in logging.getLevelNamesMapping().items()},
}
_FRAMES: Final = 4  # of structlog between the caller and logging


class Logger:
    """A structlog logger on the standard library's logger of that name, made for its first line or `bind`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: FilteringBoundLogger | None = None

    def __getattr__(self, method: str) -> Any:
        level = _LEVELS.get(method)
        if level is not None and not logging.getLogger(self._name).isEnabledFor(level):
            return _ignored
        if self._made is None:
            self._made = _structlog_logger(self._name)
        return getattr(self._made, method)


def logger(name: str) -> Any:
    """A logger with structlog's methods: `debug(event, **fields)` and the other levels, `exception`, `bind`."""
    return Logger(name)


def _structlog_logger(name: str) -> Any:
    import structlog

    return structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.stdlib.filter_by_level, _line],
        context_class=dict,
        cache_logger_on_first_use=True,
    )


def _ignored(*_: Any, **__: Any) -> None:
    """A line that no handler wants."""


def _line(_: Any, __: str, event: Any) -> tuple[tuple[str], dict[str, Any]]:
    """The arguments of the call of `logging`."""
    text, failure = str(event.pop("event")), event.pop("exc_info", None)
    fields = " ".join(
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}" for name, value in event.items()
    )
    how: dict[str, Any] = {"stacklevel": _FRAMES}
    if failure:
        how["exc_info"] = failure
    return (f"{text}  {fields}" if fields else text,), how
