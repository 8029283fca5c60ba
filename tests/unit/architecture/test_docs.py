"""The docs speak of what is there: laws name tests that exist, the map names every folder."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

KAFKA_TESTS_OF_CONSUMER_GROUPS = 151
ROOT = Path(__file__).parents[3]
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
DOCS = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "benchmarks" / "README.md"])


def check_named_tests(text: str) -> None:
    """Assert that the tests that a text names exist."""
    named = NAMED_TEST.findall(text)
    assert named
    for file, function in named:
        source = (ROOT / file).read_text()
        assert not function or re.search(rf"(def|class) {function}\b|^{function} = ", source, re.MULTILINE), (
            file,
            function,
        )


def test_every_law_names_an_existing_test() -> None:
    text = (ROOT / "docs" / "LAWS.md").read_text()
    check_named_tests(text)
    for row in re.findall(r"^\| ([A-Z]\d+) \|.*$", text, re.MULTILINE):
        assert NAMED_TEST.search(next(line for line in text.splitlines() if line.startswith(f"| {row} |"))), row


def test_each_of_kafkas_tests_of_consumer_groups_has_one_here_or_a_reason() -> None:
    text = (ROOT / "docs" / "KIP848.md").read_text()
    check_named_tests(text)
    rows = re.findall(r"^\| (test\w+) \| (.*) \|$", text, re.MULTILINE)
    assert len({name for name, _ in rows}) == len(rows) == KAFKA_TESTS_OF_CONSUMER_GROUPS
    for name, here in rows:
        assert "::" in NAMED_TEST.sub("::", here) or "[" in here, f"{name} has neither a test nor a link to the reason"


def test_every_law_id_is_unique() -> None:
    rows = re.findall(r"^\| (\S+) \|", (ROOT / "docs" / "LAWS.md").read_text(), re.MULTILINE)
    assert [row for row, count in Counter(rows).items() if count > 1] == []


def test_the_map_names_every_folder_of_the_broker() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    folders = [path.name for path in (ROOT / "coordinator").iterdir() if (path / "__init__.py").exists()]
    assert not [name for name in folders if f"`coordinator/{name}/`" not in text]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text()):
        assert (path.parent / target).exists(), target
