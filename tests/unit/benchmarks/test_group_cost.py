"""The program that measures groups without sockets gets members in: every reply of a broker is checked by it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from benchmarks.group_cost import measure


def test_both_figures_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(measure(str(tmp_path), members=8, groups=8))
    printed = capsys.readouterr().out
    assert "a member of a rebalance of 8 " in printed
    assert "a group joined, 8 at once " in printed
