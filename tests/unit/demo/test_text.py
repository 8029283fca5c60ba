"""The text of the demo."""

from __future__ import annotations

from rota.demo.text import lines


def test_it_is_a_whole_book_without_blank_lines() -> None:
    book = lines()
    assert len(book) > 2_500
    assert all(line.strip() for line in book)
    assert "Alice was beginning to get very tired" in " ".join(book)
    assert book[-1].strip() == "THE END"
