"""The contract's values, and that both logs implement it. tests/contract/test_log.py tests the laws of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.coordinator.log.contract import Log, LogConfig, TimedOffset
from rota.coordinator.log.disk import DiskLog
from rota.coordinator.log.memory import MemoryLog


def test_both_logs_have_all_that_the_contract_names(tmp_path: Path) -> None:
    logs: list[Log] = [MemoryLog(), DiskLog.open(tmp_path / "t-0", LogConfig())]  # mypy holds the signatures
    promised = {name for name in vars(Log) if not name.startswith("_")} | set(Log.__annotations__)
    for log in logs:
        assert promised <= set(dir(log))


def test_values_do_not_change() -> None:
    with pytest.raises(AttributeError):
        LogConfig().segment_bytes = 5  # type: ignore[misc]
    with pytest.raises(AttributeError):
        TimedOffset(1, 2).offset = 5  # type: ignore[misc]
