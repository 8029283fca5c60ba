"""The client's log: structlog's events with fields, handed to the standard library's `logging`.

A library does not choose where an application's log goes: everything below the logger `rota.client` follows the
application's own logging configuration, and is silent by default below WARNING.
"""

from __future__ import annotations

import logging
from typing import Any

import structlog


def logger(name: str) -> Any:
    """A structlog logger whose lines read `event  field=value field=value`, whatever structlog is configured to."""
    return structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.stdlib.filter_by_level, structlog.processors.format_exc_info, _line],
        context_class=dict,
        cache_logger_on_first_use=False,
    )


def _line(_: Any, __: str, event: Any) -> str:
    text = str(event.pop("event"))
    fields = " ".join(
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}" for name, value in event.items()
    )
    return f"{text}  {fields}" if fields else text
