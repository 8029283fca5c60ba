"""docs/COMMANDS.md is what the commands say."""

from __future__ import annotations

from pathlib import Path

from rota.cli.page import page
from rota.cli.registry import COMMANDS

PAGE = Path(__file__).parents[3] / "docs" / "COMMANDS.md"


def test_the_page_is_fresh() -> None:
    fresh = "\n".join(page()) + "\n"
    assert PAGE.read_text() == fresh, "write it with: python -m rota.cli.page > docs/COMMANDS.md"


def test_the_page_has_every_command() -> None:
    text = PAGE.read_text()
    assert [name for name in COMMANDS if f"### rota {name}\n" not in text] == []
