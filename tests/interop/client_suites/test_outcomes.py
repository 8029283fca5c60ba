"""A suite that fails or ends before its end is found: also if nothing says FAIL, and if the second chance is empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.interop.client_suites.sarama import CRASH, outcomes, run_go_tests
from tests.interop.client_suites.test_client_suites import assert_passed

PASSED = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- SKIP: TestA/b (0.00s)\n"
FATAL = "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n"


def test_outcomes_of_go() -> None:
    found = {"TestA": "passed", "TestA/b": "skipped: "}
    assert outcomes(f"{PASSED}PASS\n") == found
    assert outcomes(f"{PASSED}--- FAIL: TestC (0.00s)\nFAIL\n") == {**found, "TestC": "failed: "}
    for end in ("panic: test timed out after 600s", FATAL.partition("\n")[0]):
        assert outcomes(f"{PASSED}{end}\n") == {**found, CRASH: f"failed: {end}"}
    assert outcomes("") == {CRASH: "failed: "}


def test_a_program_that_is_killed_has_failed(tmp_path: Path) -> None:
    program = tmp_path / "package.test"
    program.write_text("#!/bin/sh\necho '--- PASS: TestA (0.00s)'\nkill -9 $$\n")
    program.chmod(0o755)
    found = run_go_tests(program, tmp_path, "^Test", (), {}, tmp_path / "output.txt")
    assert found["TestA"] == "passed"
    assert found[CRASH].startswith("failed: ")


@pytest.mark.parametrize(
    ("first", "second", "requested", "passes"),
    [
        ({"TestA": "failed: "}, {"TestA": "passed"}, ["TestA"], True),
        ({"TestA": "failed: "}, {"TestA": "failed: "}, ["TestA"], False),
        ({"TestA": "failed: "}, {}, ["TestA"], False),
        ({"TestA": "passed", CRASH: "failed: "}, {"TestA": "passed", "TestB": "passed"}, [], True),
        ({"TestA": "passed", CRASH: "failed: "}, {"TestA": "passed", CRASH: "failed: "}, [], False),
    ],
)
def test_a_second_chance_is_used(
    first: dict[str, str], second: Mapping[str, str], requested: Sequence[str], passes: bool
) -> None:
    calls = []

    def again(names: list[str]) -> dict[str, str]:
        calls.append(names)
        return dict(second)

    try:
        assert_passed(first, again)
    except AssertionError:
        assert not passes
    else:
        assert passes
    assert calls == [requested]
