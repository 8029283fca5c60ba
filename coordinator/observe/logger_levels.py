"""The levels of Rota's loggers, which may change while the process runs (KIP-412).

Law
    LL1 Below its level a call of a logger is an empty function, also after the level has changed, and also of a logger
        that was used or bound to fields before.
    LL2 Where lines are rendered in one step, it is the line of structlog's chain; who captures events gets them.

structlog has a class of loggers for each level, whose methods below the level do nothing. Changing a level changes the
class of the loggers that are in use.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from weakref import WeakValueDictionary

ROOT: Final = "root"
_NUMBERS: Final = {"DEBUG": 10, "ERROR": 40, "FATAL": 50, "INFO": 20, "TRACE": 0, "WARN": 30}
VALID: Final = tuple(_NUMBERS)  # Kafka's names, in its order
Lines = Sequence[tuple[str, Mapping[str, Any]]]  # the event and the fields of each
_HOT_METHODS: Final = {"info": 20, "warning": 30}
_NAMES: Final = {0: "TRACE", 10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR", 50: "FATAL"}

NAMES: Final = (
    "rota.api",
    "rota.audit",
    "rota.broker",
    "rota.cluster",
    "rota.config",
    "rota.controller",
    "rota.coordinator",
    "rota.health",
    "rota.http",
    "rota.isr",
    "rota.loop",
    "rota.metadata",
    "rota.partition",
    "rota.partitions",
    "rota.replication",
    "rota.security",
    "rota.serve",
    "rota.server",
    "rota.supervisor",
    "rota.timeline",
    "rota.upkeep",
)
"""The loggers of the broker; `root` stands for all others, those of libraries among them."""


class LoggerLevels:
    """The level of each logger; one without a level of its own has that of `root`."""

    def __init__(self) -> None:
        self._root, self._own = "INFO", dict[str, str]()
        self._in_use: WeakValueDictionary[int, Any] = WeakValueDictionary()  # loggers by identity

    def reset(self, number: int) -> None:
        """Forget all levels and loggers; `number` is logging's number of the level of `root`."""
        self._root = _NAMES[number]
        self._own.clear()
        self._in_use.clear()

    def all(self) -> dict[str, str]:
        """Return the level in force of every logger."""
        return {ROOT: self._root, **{name: self._own.get(name, self._root) for name in NAMES}}

    def set(self, name: str, level: str | None) -> None:
        """Give a logger a level of VALID; None: that of `root`, from now on."""
        if name == ROOT:
            assert level is not None
            self._root = level
            logging.getLogger().setLevel(_NUMBERS[level])
        elif level is None:
            self._own.pop(name, None)
        else:
            self._own[name] = level
        for logger in list(self._in_use.values()):
            logger.__class__ = self.class_of(logger._logger.name)

    def __len__(self) -> int:
        return len(self._in_use)

    def class_of(self, name: str) -> type[Any]:
        """Return structlog's class of loggers with the level of this one; its loggers change with the level."""
        return _class_of(_NUMBERS[self._own.get(name, self._root)])

    def keep(self, logger: Any) -> None:
        """Change the class of this logger with the level of its name, as long as it is in use."""
        self._in_use[id(logger)] = logger


@lru_cache(maxsize=len(_NUMBERS))
def _class_of(number: int) -> type[Any]:
    import structlog  # `logs` says when it is loaded

    base: Any = structlog.make_filtering_bound_logger(number)

    def keep(self: Any, logger: Any, processors: Any, context: Any) -> None:
        base.__init__(self, logger, processors, context)
        LOGGER_LEVELS.keep(self)

    written = {name: _written_at_once(name, base) for name, at in _HOT_METHODS.items() if at >= number}
    written["info_all"] = _infos_written_at_once if _HOT_METHODS["info"] >= number else _nothing
    return type(base.__name__, (base,), {"__init__": keep, **written})


def _written_at_once(name: str, base: Any) -> Any:
    """Return the method of that level which writes an event without structlog's chain, where it has one step (LL2)."""
    by_structlog = getattr(base, name)

    def method(self: Any, event: str | None = None, *args: Any, **fields: Any) -> Any:
        sink, processors = self._logger, self._processors
        if args or len(processors) != 1 or processors[0] is not sink.render:
            return by_structlog(self, event, *args, **fields)
        sink.msg(sink.render(None, name, {**self._context, **fields, "event": event}))
        return None

    return method


def _infos_written_at_once(self: Any, lines: Lines) -> int:
    """See `logs.info_all`."""
    sink, processors = self._logger, self._processors
    if len(processors) != 1 or processors[0] is not sink.render:
        return infos_one_by_one(self.info, lines)
    rendered, lost = sink.render_infos(self._context, lines)
    if rendered:
        sink.msg("\n".join(rendered))
    return int(lost)


def _nothing(self: Any, lines: Lines) -> int:
    return 0


def infos_one_by_one(info: Any, lines: Lines) -> int:
    """Return how many lines were lost because the log raised: that of a process that set up structlog itself."""
    lost = 0
    for event, fields in lines:
        try:
            info(event, **fields)
        except Exception:  # noqa: BLE001  # whatever it is: the other lines are written
            lost += 1
    return lost


LOGGER_LEVELS: Final = LoggerLevels()
"""The levels of this process, as global as structlog's configuration."""
