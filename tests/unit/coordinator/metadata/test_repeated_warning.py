from __future__ import annotations

import structlog
from structlog.testing import capture_logs

from rota.coordinator.metadata.repeated_warning import RepeatedWarning


def test_a_failure_that_repeats_is_logged_once_and_counted_when_it_is_over() -> None:
    with capture_logs() as lines:
        warning = RepeatedWarning(structlog.get_logger(), "No connection")
        warning.succeeded()
        for _ in range(5):
            warning.failed("refused")
        warning.failed("reset")
        warning.succeeded()
        warning.succeeded()
    assert [(line["log_level"], line["event"], line["reason"], line.get("count")) for line in lines] == [
        ("warning", "No connection", "refused", None),
        ("info", "No connection: it is over", "refused", 5),
        ("warning", "No connection", "reset", None),
    ]
