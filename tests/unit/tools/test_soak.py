"""What a soak writes into docs/SOAK.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools import soak

from rota.cli.settings import SETTING_VARIABLES

REPORT = """<testsuites><testsuite tests="9" failures="1" errors="1" skipped="2"/></testsuites>"""
RESULT = soak.Result("chaos", "2026-01-02", "abc1234", 1_200, 0, 3, 90.0)


def test_the_counts_are_those_of_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    result = soak.counted("chaos", report, 60.0)
    assert (result.passed, result.failed, result.skipped) == (5, 2, 2)


def test_a_run_without_a_report_has_failed(tmp_path: Path) -> None:
    assert soak.counted("chaos", tmp_path / "none.xml", 1.0).failed == 1


def test_a_row_is_added_once_and_then_replaced() -> None:
    page = soak.updated("# Soak\n\n| a |\n|---|\n", RESULT)
    assert page.endswith("| `make soak SUITES=chaos` | 2026-01-02 | abc1234 | 1,200 | 0 | 3 | 1.5 min |\n")
    later = soak.updated(page, soak.Result("chaos", "2026-01-03", "abc1235", 7, 0, 0, 60.0))
    assert later.count("SUITES=chaos") == 1
    assert "2026-01-03" in later
    assert soak.updated(later, soak.Result("spark", "2026-01-03", "x", 1, 0, 0, 6.0)).count("make soak SUITES=") == 2


def test_every_suite_has_folders_that_exist() -> None:
    for folders in soak.SUITES.values():
        assert all((soak.ROOT / folder).exists() for folder in folders)


def test_no_variable_of_the_tests_is_a_setting_of_the_commands_that_they_run() -> None:
    """All tests of `rota` failed in a soak that set one."""
    names = {*soak.VARIABLES, *re.findall(r"\bROTA_\w+(?==)", (soak.ROOT / "Makefile").read_text())}
    assert not [name for name in names if name.startswith(SETTING_VARIABLES)]


def test_an_unknown_suite_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["nothing"]) == 2
    assert "known are property, simulation" in capsys.readouterr().err
