from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tools.audit import NOT_AUDITED, VULNERABLE, audit_result, main

CLEAN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI"}
VULNERABLE_PACKAGE = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}


@pytest.mark.parametrize(
    ("packages", "code", "line"),
    [
        ([CLEAN], 0, "1 of 1 packages audited, 0 vulnerabilities"),
        ([CLEAN, SKIPPED], NOT_AUDITED, "NOT AUDITED: b: Dependency not found on PyPI"),
        ([SKIPPED, VULNERABLE_PACKAGE], VULNERABLE, "VULNERABLE: c 2: CVE-1, fixed in 3"),
        ([], NOT_AUDITED, "0 of 0 packages audited, 0 vulnerabilities"),
    ],
)
def test_what_was_not_audited_is_no_success(packages: list[dict[str, Any]], code: int, line: str) -> None:
    found, lines = audit_result({"dependencies": packages})
    assert (found, line in lines) == (code, True)


def test_a_pip_audit_that_cannot_ask_is_loud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "pip_audit.py"
    script.write_text("raise SystemExit('no network')")
    assert main([sys.executable, str(script)]) == NOT_AUDITED
    assert "NOT AUDITED: pip-audit has no result: no network" in capsys.readouterr().err
