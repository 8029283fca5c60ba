"""The contract's own values, and that both logs are logs. What logs promise is in tests/contract/test_log.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.coordinator.log.contract import AppendRefused, Log, LogConfig, OffsetOutOfRange, TimedOffset
from rota.coordinator.log.disk import DiskLog
from rota.coordinator.log.memory import MemoryLog
from rota.protocol.errors import ErrorCode


def test_both_logs_have_all_that_the_contract_names(tmp_path: Path) -> None:
    logs: list[Log] = [MemoryLog(), DiskLog.open(tmp_path / "t-0", LogConfig())]  # mypy holds the signatures
    promised = {name for name in vars(Log) if not name.startswith("_")} | set(Log.__annotations__)
    for log in logs:
        assert promised <= set(dir(log))


def test_errors_say_what_happened() -> None:
    assert str(OffsetOutOfRange(9, 2, 5)) == "offset 9 is outside the log, which holds 2 to 5"
    refused = AppendRefused(ErrorCode.CORRUPT_MESSAGE, "why")
    assert (refused.code, str(refused)) == (ErrorCode.CORRUPT_MESSAGE, "why")


def test_values_do_not_change() -> None:
    with pytest.raises(AttributeError):
        LogConfig().segment_bytes = 5  # type: ignore[misc]
    with pytest.raises(AttributeError):
        TimedOffset(1, 2).offset = 5  # type: ignore[misc]
