"""LL1: levels of loggers that change while the process runs."""

from __future__ import annotations

import gc
import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import structlog

from rota.coordinator.observe.logger_levels import LOGGER_LEVELS, NAMES, ROOT
from rota.coordinator.observe.logs import configure, get_logger, writing_by_thread


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    structlog.reset_defaults()
    LOGGER_LEVELS.reset(logging.INFO)
    root.handlers = handlers
    root.setLevel(level)


def events(text: str) -> list[str]:
    return [json.loads(line)["event"] for line in text.splitlines()]


def test_a_level_holds_for_its_logger_alone() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    LOGGER_LEVELS.set("rota.server", "DEBUG")
    LOGGER_LEVELS.set("rota.broker", "ERROR")
    for name in ("rota.server", "rota.broker", "rota.upkeep"):
        for level in ("debug", "info", "error"):
            getattr(get_logger(name), level)(f"{name} {level}")
    assert events(stream.getvalue()) == [
        "rota.server debug",
        "rota.server info",
        "rota.server error",
        "rota.broker error",
        "rota.upkeep info",
        "rota.upkeep error",
    ]


def test_loggers_that_are_in_use_change_and_are_empty_functions_below_their_level(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("w") as stream, writing_by_thread("json", "info", stream):
        log, other = get_logger("rota.server"), get_logger("rota.broker")
        log.debug("before")
        other.info("first")
        LOGGER_LEVELS.set("rota.server", "DEBUG")
        log.debug("after")
        LOGGER_LEVELS.set(ROOT, "WARN")
        log.debug("still")
        other.info("nothing")
        logging.getLogger("kazoo").info("nothing of libraries")
        LOGGER_LEVELS.set("rota.server", None)
        log.info("nothing, as of root")
        assert log.info.__code__ is other.info.__code__ is log.debug.__code__  # the empty function of structlog
        assert log.warning.__code__ is not log.info.__code__
        log.warning("last")
    assert events(path.read_text()) == ["first", "after", "still", "last"]


def test_every_logger_of_the_broker_is_listed() -> None:
    folder = Path(__file__).parents[4] / "coordinator"
    found = {
        name
        for file in folder.rglob("*.py")
        for name in re.findall(r'get_logger\("([a-z_.]+)"\)', file.read_text("utf-8"))
    }
    assert tuple(sorted(found)) == NAMES
    assert set(LOGGER_LEVELS.all()) == {ROOT, *NAMES}


def test_the_levels_are_those_of_the_command_line() -> None:
    configure("json", "warning", io.StringIO())
    assert set(LOGGER_LEVELS.all().values()) == {"WARN"}


@pytest.mark.parametrize("is_final", [True, False])
def test_bound_loggers_change_with_their_logger(tmp_path: Path, is_final: bool) -> None:
    path = tmp_path / "log"
    with (
        path.open("w") as stream,
        writing_by_thread("json", "info", stream) if is_final else nullcontext(configure("json", "info", stream)),
    ):
        bound = get_logger("rota.server").bind(part="a")
        twice = bound.bind(more=1)
        twice.debug("before")
        LOGGER_LEVELS.set("rota.server", "DEBUG")
        bound.debug("bound")
        twice.debug("bound twice")
        LOGGER_LEVELS.set("rota.server", "ERROR")
        twice.warning("nothing")
    assert events(path.read_text()) == ["bound", "bound twice"]


def test_deleted_bound_loggers_are_not_kept() -> None:
    configure("json", "info", io.StringIO())
    before = len(LOGGER_LEVELS)
    for number in range(100):
        get_logger("rota.server").bind(number=number)
    gc.collect()
    assert len(LOGGER_LEVELS) <= before + 1
