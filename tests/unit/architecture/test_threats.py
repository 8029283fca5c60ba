"""The threat model names tests that exist, and a test in every row."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "THREATS.md"
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| it tries")]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_row_names_tests_that_exist() -> None:
    assert len(ROWS) > 20
    for row in ROWS:
        found = NAMED.findall(row)
        assert found, row
        for file, function in found:
            assert (ROOT / file).is_file(), row
            assert not function or f"def {function}(" in (ROOT / file).read_text(), f"{function} in {row}"
