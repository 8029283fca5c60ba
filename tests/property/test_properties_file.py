"""The file format: whatever was written comes back, in any of the ways in which it may be written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.transport.properties_file import FILE_BYTES_MAX, FileRefused, load_properties, parse_properties

SPECIAL = "=:#! \t\f\n\r\\"
TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029") | st.sampled_from(SPECIAL), max_size=12
)
NOISE = st.sampled_from(["", "# a = b\n", "! x\n", "\n", "  \t\n", "# ends in a backslash \\\n"])


def written(name: str, value: str, draw: st.DataObject) -> str:
    """One pair in a way that the format allows."""
    between = draw.draw(st.sampled_from(["=", ":", " ", " = ", "\t:\t", " \f"]))
    text = "".join(escaped(name, SPECIAL, draw)) + between + "".join(_value(value, draw))
    return text + "\n"


def escaped(text: str, special: str, draw: st.DataObject) -> Iterator[str]:
    for char in text:
        if char in "\n\r\f\t":
            yield {"\n": "\\n", "\r": "\\r", "\f": "\\f", "\t": "\\t"}[char]
        elif char in special or draw.draw(st.integers(0, 9)) == 0:
            yield unit_escapes(char) if draw.draw(st.booleans()) or char.isalnum() else "\\" + char
        else:
            yield char


def _value(value: str, draw: st.DataObject) -> Iterator[str]:
    for at, piece in enumerate(escaped(value, "\\" if value[:1] not in SPECIAL or not value else SPECIAL, draw)):
        if at and draw.draw(st.integers(0, 9)) == 0:
            yield "\\\n" + draw.draw(st.sampled_from(["", "  ", "\t"]))
            piece = unit_escapes(piece) if piece in " \t\f" else piece  # blanks at the start of a line would go
        yield piece


def unit_escapes(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2))


@settings(deadline=None)
@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=6), st.data())
def test_written_properties_are_read_back(pairs: dict[str, str], data: st.DataObject) -> None:
    text = "".join(data.draw(NOISE) + written(name, value, data) for name, value in pairs.items())
    ends = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    assert parse_properties(text.replace("\n", ends)) == pairs


@settings(deadline=None)
@given(st.text(st.sampled_from(SPECIAL + "abu0é"), max_size=60))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        pairs = parse_properties(text)
    except FileRefused as why:
        refused = str(why)
        pairs = {}
    else:
        refused = "line "
    assert "line " in refused
    assert sum(len(name) + len(value) for name, value in pairs.items()) <= len(text)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b c  ", {"a": "b c  "}),
        ("a\nb:", {"a": "", "b": ""}),
        ("a==b", {"a": "=b"}),
        ("a : = b", {"a": "= b"}),
        ("a b=c", {"a": "b=c"}),
        ("a=b\\\n  c\\\n  d", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# no comment", {"a": "b# no comment"}),
        ("a=b\\", {"a": "b"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=\\u0041\\ud83d\\ude00\\q", {"a": "A😀q"}),
        ("\\\na=b", {"a": "b"}),
        ("=x", {"": "x"}),
    ],
)
def test_the_corners_of_the_format(text: str, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


def test_a_broken_escape_is_refused_with_its_line() -> None:
    with pytest.raises(FileRefused, match="line 2"):
        parse_properties("a=b\nc=\\u00g1")


def test_a_file_is_loaded_from_disk(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("# grüße\r\nnum.partitions=3\r\n".encode())
    assert load_properties(file) == {"num.partitions": "3"}


def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"a=\xff\n")
    with pytest.raises(FileRefused, match="byte 2"):
        load_properties(file)
    file.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(FileRefused, match="larger than"):
        load_properties(file)
    with pytest.raises(FileNotFoundError):
        load_properties(tmp_path / "none")
