"""docs/COMMANDS.md is what the commands say."""

from __future__ import annotations

from pathlib import Path

from rota.cli.page import WITHOUT_JSON, page
from rota.cli.reference import references
from rota.cli.registry import COMMANDS

PAGE = Path(__file__).parents[3] / "docs" / "COMMANDS.md"


def test_the_page_is_fresh() -> None:
    fresh = "\n".join(page()) + "\n"
    assert PAGE.read_text() == fresh, "write it with: python -m rota.cli.page > docs/COMMANDS.md"


def test_the_page_has_every_command() -> None:
    text = PAGE.read_text()
    assert [name for name in COMMANDS if f"### rota {name}\n" not in text] == []


def test_every_command_prints_json_but_those_that_the_page_names() -> None:
    flags = {
        reference.words: {flag for each in reference.options for flag in each.flags}
        for name in COMMANDS
        for reference in references(name)
    }
    assert {words[0] for words, known in flags.items() if "--json" not in known} == set(WITHOUT_JSON)
    assert [name for name, reason in WITHOUT_JSON.items() if f"- `rota {name}`: {reason}" not in PAGE.read_text()] == []
