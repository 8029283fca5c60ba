"""The `.properties` format of Java: `name = value`, comments, continued lines, escapes.

Source: java.util.Properties, load(Reader). A line is continued when it ends in an odd number of backslashes; a name
ends at the first unescaped `=`, `:` or blank; \\uXXXX, \\t, \\n, \\r and \\f are escapes, any other escaped one is
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FILE_BYTES_MAX = 1 << 20
_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class FileRefused(ValueError):
    """A file is not in the properties format. The message names the line."""


def load_properties(path: str | Path) -> dict[str, str]:
    """Return names and values of a file in UTF-8. The last value of a repeated name counts.

    Raises FileRefused, OSError.
    """
    file = Path(path)
    if file.stat().st_size > FILE_BYTES_MAX:
        raise FileRefused(f"{file} is larger than {FILE_BYTES_MAX} bytes")
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as why:
        raise FileRefused(f"{file} is not UTF-8 text (byte {why.start})") from None
    try:
        return parse_properties(text)
    except FileRefused as why:
        raise FileRefused(f"{file}, {why}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Return names and values of the text. Raises FileRefused."""
    return dict(_pair(number, line) for number, line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first line, line) with continuations joined, comments and empty lines left out."""
    pieces: list[str] = []
    began = 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.lstrip(_BLANK)
        if not any(pieces):  # a lone backslash begins no line
            if not line or line[0] in "#!":
                continue
            began = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pieces.append(line[:-1])
            continue
        yield began, "".join((*pieces, line))
        pieces, began = [], 0
    if any(pieces):
        yield began, "".join(pieces)


def _pair(number: int, line: str) -> tuple[str, str]:
    end, escaped = 0, False
    while end < len(line) and (escaped or line[end] not in "=:" + _BLANK):
        escaped = line[end] == "\\" and not escaped
        end += 1
    rest = line[end:].lstrip(_BLANK)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(_BLANK)
    return _unescape(number, line[:end]), _unescape(number, rest)


def _unescape(number: int, text: str) -> str:
    if "\\" not in text:
        return text
    out, at = [], 0
    while at < len(text):
        if text[at] != "\\":
            out.append(text[at])
            at += 1
        elif text[at + 1 : at + 2] == "u":
            out.append(_code_unit(number, text[at + 2 : at + 6]))
            at += 6
        else:
            out.append(_ESCAPES.get(text[at + 1 : at + 2], text[at + 1 : at + 2]))
            at += 2
    return (
        "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )  # pairs of escapes are one character


def _code_unit(number: int, digits: str) -> str:
    if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise FileRefused(f"line {number}: \\u needs four hexadecimal digits")
    return chr(int(digits, 16))
