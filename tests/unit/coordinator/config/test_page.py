"""The page about settings is what the tables say now."""

from __future__ import annotations

from pathlib import Path

from rota.coordinator.config.page import page


def test_the_page_in_the_docs_is_fresh() -> None:
    written = Path(__file__).parents[4] / "docs" / "SETTINGS.md"
    assert written.read_text("utf-8") == "\n".join(page()) + "\n"
