"""The sessions of the gate: their environment, and the counts of both in its last line."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tools import gate

ROOT = Path(__file__).parents[3]
CI = (ROOT / ".ci" / "run").read_text()
SKIPPING = re.compile(r"""(?:which|needs)\("([\w-]+)"\)""")
# what a skip looks for, and why no entry of PROGRAMS has its name
OTHERS = {
    "bash": "every Debian has it, and .ci/run is written in it",
    "cc": "a name of gcc",
    "chromium-headless-shell": "a faster chromium",
    "docker": "its engine is a service; CI starts one where the kernel lets it (tools.docker_engine)",
    "javac": "in the package of java",
}
REPORT = """<testsuites><testsuite tests="{}" failures="{}" errors="0" skipped="{}"/></testsuites>"""


def test_the_last_line_has_the_counts_of_both_sessions(tmp_path: Path) -> None:
    reports = tmp_path / "units.xml", tmp_path / "others.xml"
    reports[0].write_text(REPORT.format(9, 1, 2))
    reports[1].write_text(REPORT.format(5, 0, 0))
    assert gate.summary(reports, 60.4) == "==== both sessions: 1 failed, 11 passed, 2 skipped in 60 s ===="


def test_a_session_without_a_report_is_an_error(tmp_path: Path) -> None:
    assert "0 passed, 1 errors" in gate.summary([tmp_path / "none.xml"], 1)


def test_processes_of_the_tests_write_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("KEPT", "1")
    found = gate.environment()
    assert "PYTHONDONTWRITEBYTECODE" not in found
    assert found["KEPT"] == "1"


def test_tests_are_compiled_before_the_workers_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert False\n")
    gate.compile_tests(["-c", "/dev/null", f"--rootdir={tmp_path}", str(tmp_path)])
    assert [path.name for path in (tmp_path / "__pycache__").glob("test_it*-pytest-*.pyc")]


@pytest.mark.parametrize(("body", "code"), [("assert True", 0), ("assert False", 1)])
def test_the_unit_session_ends_with_the_code_of_pytest(
    body: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(f"def test_it():\n    {body}\n")
    monkeypatch.setattr(gate, "UNITS", str(test))
    with gate.UnitSession(
        ["-c", "/dev/null", f"--rootdir={tmp_path}", "-p", "no:cacheprovider"], tmp_path / "out"
    ) as units:
        assert units.finish() == code
    assert "1 passed" in capfd.readouterr().out or code


def test_a_unit_session_that_is_not_awaited_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("import threading\ndef test_it():\n    threading.Event().wait()\n")
    monkeypatch.setattr(gate, "UNITS", str(test))
    with gate.UnitSession(["-c", "/dev/null", f"--rootdir={tmp_path}"], tmp_path / "out"):
        pass  # leaving ends it


def test_ts4_every_program_that_a_skip_looks_for_is_one_that_ci_must_have() -> None:
    found = {name for path in (ROOT / "tests").rglob("*.py") for name in SKIPPING.findall(path.read_text())}
    assert {"node", "go", "chromium"} <= found
    assert found - OTHERS.keys() <= gate.PROGRAMS.keys()


def test_ts4_ci_installs_every_program_that_it_must_have() -> None:
    assert [name for name in gate.PROGRAMS if f"command -v {name} >/dev/null || missing+=(" not in CI] == []


def test_ci_ends_with_the_code_of_the_tests_and_leaves_no_image_behind(tmp_path: Path) -> None:
    stubs, temporary = tmp_path / "bin", tmp_path / "tmp"
    temporary.mkdir()
    stubs.mkdir()
    for name in {*re.findall(r"command -v ([\w-]+)", CI), "python3", "apt-get", "sudo", "mmdebstrap"}:
        (stubs / name).write_text("#!/bin/sh\n" + ("test -d ${ROTA_IMAGE_BASE%/*} && exit 3" if name == "make" else ""))
        (stubs / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{stubs}:{os.environ['PATH']}", "TMPDIR": str(temporary)}
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, check=False, timeout=60)
    assert (done.returncode, list(temporary.iterdir())) == (3, [])


def test_ts4_a_program_that_is_missing_fails_in_ci_and_is_named_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "PROGRAMS", {"rota-no-such-program": "nothing"})
    monkeypatch.setenv("ROTA_CI", "1")
    assert gate.main([]) == 1
    output = capsys.readouterr().err
    assert "SKIPPED because rota-no-such-program is not installed: nothing" in output
    assert "install rota-no-such-program" in output
