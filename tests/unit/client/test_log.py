import io
import logging
import subprocess
import sys

import pytest
import structlog

from rota.client.log import logger


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "rota.client.test")
    return caplog


def test_an_event_is_one_line_with_its_fields(log: pytest.LogCaptureFixture) -> None:
    logger("rota.client.test").info("joined the group", group="g", generation=3, member=None)
    assert log.record_tuples == [
        ("rota.client.test", logging.INFO, "joined the group  group='g' generation=3 member=None")
    ]


def test_bound_fields_stand_in_every_line(log: pytest.LogCaptureFixture) -> None:
    bound = logger("rota.client.test").bind(group="g")
    bound.warning("left")
    bound.bind(node=1).error("lost")
    assert [record.message for record in log.records] == ["left  group='g'", "lost  group='g' node=1"]


def test_percent_signs_are_not_format_directives(log: pytest.LogCaptureFixture) -> None:
    logger("rota.client.test").info("100% of %s", topic="50%d")
    assert log.messages == ["100% of %s  topic='50%d'"]


def test_exc_info_is_logged_with_a_traceback(log: pytest.LogCaptureFixture) -> None:
    failure = ZeroDivisionError("nothing to divide")
    logger("rota.client.test").error("a task failed", task="t", exc_info=failure)
    assert log.messages == ["a task failed  task='t'"]
    assert log.records[0].exc_info == (ZeroDivisionError, failure, None)
    assert log.text.count("ZeroDivisionError: nothing to divide") == 1


def test_an_exception_is_logged_where_it_is_caught(log: pytest.LogCaptureFixture) -> None:
    try:
        raise ZeroDivisionError("nothing to divide")
    except ZeroDivisionError:
        logger("rota.client.test").exception("a task failed")
    assert log.messages == ["a task failed"]
    assert log.text.count("ZeroDivisionError: nothing to divide") == 1
    assert log.records[0].filename == "test_log.py"


def test_lines_are_found_where_they_were_written(log: pytest.LogCaptureFixture) -> None:
    for answer in (logger("rota.client.test"), logger("rota.client.test").bind(n=1)):
        answer.debug("here")
        answer.error("here")
    assert {(record.filename, record.funcName) for record in log.records} == {
        ("test_log.py", "test_lines_are_found_where_they_were_written")
    }


def test_values_of_disabled_levels_are_not_formatted(log: pytest.LogCaptureFixture) -> None:
    class Dear:
        def __repr__(self) -> str:
            raise AssertionError("it was made into text")

    log.set_level(logging.WARNING, "rota.client.test")
    logger("rota.client.test").debug("nothing", value=Dear())
    assert log.records == []


def test_the_applications_logging_decides(log: pytest.LogCaptureFixture) -> None:
    """Its handlers, formats and levels hold for `rota.client` and all below it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s|%(name)s|%(message)s"))
    root = logging.getLogger("rota.client")
    root.addHandler(handler)
    try:
        logger("rota.client.test").info("seen", n=1)
        logging.getLogger("rota.client.test").setLevel(logging.ERROR)
        logger("rota.client.test").info("unseen")
    finally:
        root.removeHandler(handler)
    assert stream.getvalue() == "INFO|rota.client.test|seen  n=1\n"


def test_the_structlog_configuration_of_the_application_is_not_used(log: pytest.LogCaptureFixture) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the application's processors are not asked")

    structlog.configure(processors=[refuse])
    try:
        logger("rota.client.test").info("fine", n=1)
    finally:
        structlog.reset_defaults()
    assert log.messages == ["fine  n=1"]


def test_structlog_is_imported_for_the_first_line_that_is_logged() -> None:
    """A client that logs nothing does not pay for it: in Spark each task and each plan may be a new process."""
    code = """
import sys
from rota.client import Consumer, Producer
from rota.client.log import logger

log = logger("rota.client.test")
log.debug("below the level", field=1)
print("structlog" in sys.modules)
log.warning("a line")
print("structlog" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\nTrue\n", "a line\n")
