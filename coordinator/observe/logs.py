"""The log of a process: lines for people on a terminal, one JSON object a line for everything else.

A module has `log = structlog.get_logger("rota.<part>")` and logs an event with fields: `log.info("up", port=9092)`.
Below the configured level a call is an empty function. A process that serves logs by `writing_by_thread`.

Laws
    A log that cannot be written neither stops nor blocks the broker.
    CL2 No character of a name that clients choose reaches a terminal and controls it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache, partial
from io import StringIO
from typing import Any, TextIO

from rota.coordinator.observe.log_writer import LogWriter
from rota.coordinator.observe.logger_levels import LOGGER_LEVELS, ROOT, Lines, infos_one_by_one

# structlog loads these where it finds them: for coloured tracebacks (half of its time to import), for Windows, and for
# context variables of greenlets (1.7 MB of an idle broker). An import of None raises ImportError.
_NOT_LOADED = {"rich", "colorama", "greenlet"} - sys.modules.keys()
sys.modules.update(dict.fromkeys(_NOT_LOADED))  # type: ignore[arg-type]
import structlog  # noqa: E402

for _name in _NOT_LOADED:
    del sys.modules[_name]

get_logger = structlog.get_logger

FORMATS = ("auto", "human", "json")
LEVELS = ("debug", "info", "warning", "error")

FLUSH_S = 1.0  # how long the end of a process waits for its log

Event = dict[str, Any]
Processors = list[Callable[..., Any]]
_to_json = json.JSONEncoder(default=str, check_circular=False).encode


class Sink:
    """Hands lines to `write`. Errors of a stream are ignored: they have nowhere to be reported."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def msg(self, line: str) -> None:
        """Write one line."""
        try:  # noqa: SIM105  # `suppress` would take a third of what the line does
            self._write(line)
        except (OSError, ValueError):
            pass

    debug = info = warning = warn = error = critical = exception = log = msg


class NamedSink:
    """The sink of the logger of that name. `render` makes the line of an event in one step, `render_infos` those of
    several; None: there are more steps."""

    def __init__(self, sink: Sink, name: str, processors: Processors) -> None:
        self.name = name
        is_json = processors == [_as_json]
        self.render, self.render_infos = (_as_json if is_json else None), (_infos_as_json if is_json else None)
        self.debug = self.info = self.warning = self.warn = self.error = sink.msg
        self.critical = self.exception = self.log = self.msg = sink.msg


def configure(form: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Set up the log of this process. `form` is one of FORMATS, `level` of LEVELS; `stream` is stderr by default.

    Each line is written when it is logged, and waits for the stream.
    """
    to = sys.stderr if stream is None else stream

    def write(line: str) -> None:
        to.write(line + "\n")
        to.flush()

    _configure(Sink(write), level, _processors(form, to), is_final=False)


@contextmanager
def writing_by_thread(form: str, level: str, stream: TextIO | None = None) -> Iterator[LogWriter]:
    """Set up the log of a process that serves: a thread writes the lines, and logging never waits (`log_writer`).

    Loggers are final at their first use, which makes them cheaper. At the end the lines have FLUSH_S to be written.
    """
    to = stream or sys.stderr or open(os.devnull, "w")  # noqa: SIM115  # stderr is None when it is closed
    processors = _processors(form, to)
    to.flush()
    writer = LogWriter(to.fileno(), partial(_dropped, processors))
    _configure(Sink(writer.write), level, processors, is_final=True)
    try:
        yield writer
    finally:
        writer.close(FLUSH_S)


def info_all(logger: Any, lines: Lines) -> int:
    """Write these lines together, as `logger.info` of each would; for speed, and with one time.

    Returns how many were lost because the log raised.
    """
    bound = logger.bind()
    together = getattr(bound, "info_all", None)  # of `LoggerLevels.class_of`
    return infos_one_by_one(bound.info, lines) if together is None else together(lines)


def print_error(line: str) -> None:
    """Print a line to stderr, log or no log. With a pipe that is not read it waits for at most FLUSH_S."""
    try:
        fd = -1 if sys.stderr is None else sys.stderr.fileno()
    except OSError:  # a stream that is no file, as in tests
        print(line, file=sys.stderr)
        return
    if fd >= 0:
        writer = LogWriter(fd, str)
        writer.write(line)
        writer.close(FLUSH_S)


def _configure(sink: Sink, level: str, processors: Processors, *, is_final: bool) -> None:
    number = logging.getLevelNamesMapping()[level.upper()]
    LOGGER_LEVELS.reset(number)

    def logger_of(sink: NamedSink, processors: Processors, context: Event) -> Any:
        return LOGGER_LEVELS.class_of(sink.name)(sink, processors, context)

    structlog.configure(
        processors=processors,
        wrapper_class=logger_of,  # type: ignore[arg-type]  # structlog calls it, and nothing else
        logger_factory=lambda *names: NamedSink(sink, names[0] if names else ROOT, processors),
        cache_logger_on_first_use=is_final,
    )
    _route_stdlib(sink, number, processors)


def _processors(form: str, stream: TextIO) -> Processors:
    is_for_people = form == "human" or (form == "auto" and stream.isatty())
    return _console_processors(stream.isatty()) if is_for_people else _json_processors()


def _dropped(processors: Processors, lines: int) -> str:
    return _rendered(processors, "warning", {"event": "Log lines dropped", "lines": lines})


def _rendered(processors: Processors, level: str, event: Any) -> str:
    for processor in processors:
        event = processor(None, level, event)
    return str(event)


def _console_processors(colours: bool) -> Processors:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=False, key="time"),
        _without_controls,
        structlog.dev.ConsoleRenderer(
            colors=colours,
            timestamp_key="time",
            exception_formatter=_traceback,
            pad_event_to=24,
            sort_keys=False,
        ),
    ]


class _Literal:
    """A text as Python writes it; the renderer shows most texts as they are."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return repr(self._text)


def _without_controls(_: object, __: str, event: Event) -> Event:
    """CL2."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = _Literal(value)
    return event


def _traceback(to: TextIO, exc_info: Any) -> None:
    """CL2. Write a traceback, whose last line may have any text."""
    text = StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    lines = text.getvalue().split("\n")
    to.write("\n".join(line if line.isprintable() else repr(line)[1:-1] for line in lines))


def _json_processors() -> Processors:
    return [_as_json]


def _as_json(logger: Any, level: str, event: Event) -> str:
    """All of structlog's usual steps in one, in a fraction of their time: a rebalance logs many lines per member."""
    if "exc_info" in event:  # None is left out
        structlog.processors.format_exc_info(logger, level, event)
    return f'{_to_json(event)[:-1]}, "level": "{level}", "time": "{_now()}"}}'


def _infos_as_json(context: Event, lines: Lines) -> tuple[list[str], int]:
    """Return the lines of level info, all with this time, and how many could not be rendered."""
    rendered, end, lost = list[str](), f', "level": "info", "time": "{_now()}"}}', 0
    for event, fields in lines:
        try:
            rendered.append(_to_json({**context, **fields, "event": event})[:-1] + end)
        except Exception:  # noqa: BLE001  # whatever it is: the other lines are written
            lost += 1
    return rendered, lost


def _now() -> str:
    seconds, micros = divmod(time.time_ns() // 1000, 1_000_000)
    return f"{_second(seconds)}.{micros:06d}Z"


@lru_cache(1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class _FromStdlib(logging.Handler):
    """Log records of libraries take the same way out."""

    def __init__(self, sink: Sink, processors: Processors) -> None:
        super().__init__()
        self._sink, self._processors = sink, processors

    def emit(self, record: logging.LogRecord) -> None:
        event: Any = {"event": record.getMessage(), "logger": record.name}
        if record.exc_info:
            event["exc_info"] = record.exc_info
        self._sink.msg(_rendered(self._processors, record.levelname.lower(), event))


def _route_stdlib(sink: Sink, level: int, processors: Processors) -> None:
    root = logging.getLogger()
    root.handlers = [_FromStdlib(sink, processors)]
    root.setLevel(level)
