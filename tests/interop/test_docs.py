"""The pages that list differences from Kafka and omitted features agree with the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop.client_suites import left_out
from tests.interop.differential import explained

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "section"), [("NON_OBVIOUS.md", explained.table), ("SKIPPED.md", left_out.table)])
def test_the_page_has_the_section_as_the_tests_have_it(page: str, section: object) -> None:
    assert section() in (DOCS / page).read_text("utf-8")  # type: ignore[operator]
