"""Files outside of docs/ get a place in the site."""

from __future__ import annotations

from pathlib import Path

from tools import site


def test_a_page_outside_of_docs_is_a_page_of_the_site() -> None:
    assert site.rewritten("see [figures](../benchmarks/README.md#spark)") == "see [figures](FIGURES.md#spark)"


def test_another_file_is_copied() -> None:
    assert site.rewritten("[test](../tests/a.py)") == "[test](source/tests/a.py)"


def test_links_within_docs_stay() -> None:
    text = "[a](A.md) and ![p](images/p.png) and [web](https://example.org/../x)"
    assert site.rewritten(text) == text


def test_a_page_outside_of_docs_links_to_docs() -> None:
    assert site.rewritten_from_outside("[a](docs/A.md) [b](../docs/B.md)") == "[a](A.md) [b](B.md)"


def test_the_linked_files_are_those_of_all_pages(tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text("[x](../x.py) [b](B.md)")
    (tmp_path / "B.md").write_text("[y](../deploy/y.json#part)")
    assert site.linked_files(tmp_path) == {"x.py", "deploy/y.json"}
