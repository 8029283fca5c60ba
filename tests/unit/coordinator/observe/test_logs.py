"""The log of a process: for people, for machines, and never in the way."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
import structlog

from rota.coordinator.observe import logs
from rota.coordinator.observe.logs import LEVELS, Sink, configure, get_logger
from rota.protocol.errors import ErrorCode


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    structlog.reset_defaults()
    root.handlers = handlers
    root.setLevel(level)


class Unprintable:
    """A value that no line can have."""

    def __repr__(self) -> str:
        raise RuntimeError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_json_output_has_one_object_per_line() -> None:
    stream = io.StringIO()
    configure("auto", "info", stream)
    get_logger("rota.test").info("listening", host="127.0.0.1", port=9092, raw=b"x")
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"], event["port"], event["raw"]) == ("listening", "info", 9092, "b'x'")
    assert event["time"].endswith("Z")


def test_cl2_nothing_that_controls_a_terminal_is_in_a_line_for_people() -> None:
    controls, stream = "\x1b[31m", io.StringIO()
    configure("human", "info", stream)
    log = get_logger("rota.test")
    try:
        raise RuntimeError(controls)
    except RuntimeError:
        log.exception(controls, group=controls, name=f"a {controls}", names=[controls])
    shown = stream.getvalue()
    assert shown.count(r"\x1b[31m") == 5
    assert shown.replace("\n", "").isprintable()


def test_ll2_a_line_that_is_rendered_in_one_step_is_that_of_structlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.coordinator.observe.logs._now", lambda: "now")
    fields = {
        "group": 'g"ü',
        "count": 3,
        "is_leader": True,
        "reason": None,
        "code": ErrorCode.NONE,
        "members": ["a", 1],
    }
    written = []
    for is_at_once in (True, False):
        stream = io.StringIO()
        configure("json", "info", stream)
        log = get_logger("rota.coordinator").bind(broker=1)
        if not is_at_once:
            log._logger.render = None
        log.info("Stabilized group", **fields)
        log.warning("Stabilized %s", "group", **fields)
        log.warning("Stabilized group", **fields)
        written.append(stream.getvalue().splitlines())
    assert written[0] == written[1]
    assert len(written[0]) == 3
    first = json.loads(written[0][0])
    assert list(first) == ["broker", *fields, "event", "level", "time"]
    assert (first["code"], first["is_leader"], first["members"], first["reason"]) == (0, True, ["a", 1], None)


@pytest.mark.parametrize("form", ["json", "human"])
def test_ll2_lines_that_are_written_together_are_as_one_by_one(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.coordinator.observe.logs._now", lambda: "now")
    lines = [("Stabilized group", {"group": "g", "members": 3}), ("Group is now empty", {"group": 'h"\n'})]
    written = []
    for is_together in (True, False):
        stream = io.StringIO()
        configure(form, "info", stream)
        log = get_logger("rota.coordinator").bind(broker=1)
        if is_together:
            assert logs.info_all(log, [lines[0], ("lost", {"raw": Unprintable()}), lines[1]]) == 1
        else:
            for event, fields in lines:
                log.info(event, **fields)
        written.append(re.sub(r"\d\d:\d\d:\d\d\.\d+", "now", stream.getvalue()).splitlines())
    assert written[0] == written[1]
    assert len(written[0]) == 2


def test_ll2_lines_that_are_written_together_are_captured_and_have_a_level() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    with structlog.testing.capture_logs() as captured:
        assert logs.info_all(get_logger("rota.coordinator"), [("Loaded group", {"group": "g"})]) == 0
    assert captured == [{"group": "g", "event": "Loaded group", "log_level": "info"}]
    configure("json", "warning", stream)
    assert logs.info_all(get_logger("rota.coordinator"), [("Loaded group", {"group": "g"})]) == 0
    assert not stream.getvalue()


def test_ll2_a_test_that_captures_events_gets_them() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    bound = get_logger("rota.coordinator").bind()
    with structlog.testing.capture_logs() as captured:
        bound.info("Stabilized group", group="g")
        get_logger("rota.coordinator").info("Stabilized group", group="g")
    assert captured == [{"group": "g", "event": "Stabilized group", "log_level": "info"}] * 2
    assert not stream.getvalue()


def test_people_get_a_line_that_they_can_read() -> None:
    stream = Terminal()
    configure("auto", "info", stream)
    get_logger("rota.test").warning("connection closed", peer="127.0.0.1:5", reason="it looks like an HTTP request")
    assert "connection closed" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1
    with pytest.raises(json.JSONDecodeError):
        json.loads(stream.getvalue())


def test_the_form_can_be_chosen() -> None:
    stream = Terminal()
    configure("json", "info", stream)
    get_logger().info("x")
    assert json.loads(stream.getvalue())["event"] == "x"


@pytest.mark.parametrize("level", LEVELS)
def test_below_the_level_nothing_is_written(level: str) -> None:
    stream = io.StringIO()
    configure("json", level, stream)
    for each in LEVELS:
        getattr(get_logger(), each)("event")
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == list(LEVELS[LEVELS.index(level) :])


@pytest.mark.parametrize("form", ["human", "json"])
def test_an_exception_comes_with_its_traceback(form: str) -> None:
    stream = io.StringIO()
    configure(form, "info", stream)
    try:
        raise ValueError("nobody foresaw this")
    except ValueError as why:
        get_logger().error("request failed", exc_info=why)
    assert "ValueError: nobody foresaw this" in stream.getvalue()
    assert "test_logs.py" in stream.getvalue()


@pytest.mark.parametrize("form", ["human", "json"])
def test_no_exception_is_no_field(form: str) -> None:
    stream = io.StringIO()
    configure(form, "info", stream)
    get_logger().error("request failed", exc_info=None)
    assert "exc_info" not in stream.getvalue()


def test_log_lines_of_libraries_use_the_same_output() -> None:
    stream = io.StringIO()
    configure("json", "warning", stream)
    logging.getLogger("asyncio").info("quiet")
    logging.getLogger("asyncio").error("task %s died", 7)
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["event"] == "task 7 died"
    assert json.loads(line)["logger"] == "asyncio"


def test_a_closed_stream_raises_nothing_in_the_logger() -> None:
    configure("json", "info", Closed())
    get_logger().error("x")
    closed = io.StringIO()
    closed.close()
    Sink(closed.write).msg("x")


def test_every_kind_of_value_makes_a_line_that_machines_read() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    fields = {"text": 'a "quoted"\nline é', "none": None, "flag": True, "number": -7, "ratio": 0.5, "many": ["a", b"b"]}
    get_logger().info("x", **fields, code=logging.Formatter)
    event = json.loads(stream.getvalue())
    assert {name: event[name] for name in fields} == fields | {"many": ["a", "b'b'"]}
    assert "Formatter" in event["code"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["time"])
