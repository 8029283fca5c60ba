"""Each `rota` command in a block of a page has a name, options and arguments that the command line accepts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rota.cli.main import parser_of
from rota.cli.registry import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`rota ([a-z][a-z-]*)\b")
LINES = [
    pytest.param(line, id=f"{page.name}: {line}")
    for page in PAGES
    for block in BLOCK.findall(page.read_text())
    for line in block.splitlines()
    if line.startswith("rota ")
]


def test_pages_have_commands() -> None:
    assert LINES


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_a_page_is_accepted(line: str) -> None:
    name, *arguments = shlex.split(line, comments=True)[1:]
    if arguments == ["--help"]:
        assert name in COMMANDS
    else:
        parser_of(name).parse_args(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_in_a_sentence_exists(page: Path) -> None:
    assert set(INLINE.findall(page.read_text())) <= set(COMMANDS)
