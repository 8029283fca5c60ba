"""Decodes the timeline's records by the tables of docs/TIMELINE.md, and by nothing else of ours."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parents[3] / "docs" / "TIMELINE.md"
_INTS: Final = {"int16": ">h", "int32": ">i", "int64": ">q"}


def tables() -> dict[str, list[tuple[str, str]]]:
    """Return the fields of each structure on the page: (name, type)."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        title = section.split("\n", 1)[0].lower()
        rows = re.findall(r"^\| (\w+) \| ([\w ]+) \|", section, re.MULTILINE)
        found[title] = [row for row in rows if row[0] != "field"]
    return found


class Reader:
    """Reads one record."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.position = raw, 0
        self._tables = tables()

    def structure(self, name: str, *, tagged: bool) -> dict[str, Any]:
        """Read the fields of a table."""
        values = {field: self.value(kind) for field, kind in self._tables[name]}
        if tagged:
            for _ in range(self._varint()):
                self._varint()
                self._take(self._varint())
        return values

    def value(self, kind: str) -> Any:
        """Read one value of a type on the page."""
        if kind in _INTS:
            return struct.unpack(_INTS[kind], self._take(struct.calcsize(_INTS[kind])))[0]
        if kind == "short string":
            return self._take(self.value("int16")).decode()
        if kind in ("string", "nullable string"):
            length = self._varint() - 1
            return None if length < 0 else self._take(length).decode()
        item = kind.removeprefix("array of ")
        count = self._varint() - 1
        return [self.structure(item, tagged=True) if item in self._tables else self.value(item) for _ in range(count)]

    def _varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _take(self, count: int) -> bytes:
        self.position += count
        assert self.position <= len(self.raw), "the page says that there is more"
        return self.raw[self.position - count : self.position]


def decode(key: bytes, value: bytes) -> dict[str, Any]:
    """Return key and value of one record; asserts that the page describes every byte of them."""
    key_reader, value_reader = Reader(key), Reader(value)
    fields = {**key_reader.structure("key", tagged=False), **value_reader.structure("value", tagged=True)}
    assert (key_reader.position, value_reader.position) == (len(key), len(value))
    return fields
