"""Python source that is being generated, and the objects that its names refer to."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from rota.protocol.construct_library import c
from rota.protocol.constructs import ELEMENTS_MAX, TAGS_MAX, UUID, DecodeError
from rota.protocol.varint import SMALL, read_tag, read_uvarint, skip_tags, tag_section, text_size, uvarint

RECORDS_COPIED_BYTES_MAX: Final = 1024  # smaller record sets are cheaper to copy than to send separately

_INDENT: Final = "    "
_NAMES: Final[dict[str, Any]] = {
    "DecodeError": DecodeError,
    "ELEMENTS_MAX": ELEMENTS_MAX,
    "RECORDS_COPIED_BYTES_MAX": RECORDS_COPIED_BYTES_MAX,
    "SMALL": SMALL,
    "StructError": struct.error,
    "TAGS_MAX": TAGS_MAX,
    "join": b"".join,
    "new": object.__new__,
    "pack": struct.pack,
    "read_tag": read_tag,
    "read_uvarint": read_uvarint,
    "skip_tags": skip_tags,
    "tag_section": tag_section,
    "text_size": text_size,
    "unpack_from": struct.unpack_from,
    "uvarint": uvarint,
    "view": memoryview,
}


def fixed_code(node: c.Construct) -> str | None:
    """The `struct` code of a type of fixed size; None for all others."""
    if node is c.Flag:
        return "?"
    if node is UUID:
        return f"{node.length}s"
    return str(node.fmtstr[1:]) if isinstance(node, c.FormatField) else None


def packer(codes: str) -> struct.Struct:
    """A big-endian struct without padding."""
    return struct.Struct(">" + codes)


class Source:
    """Lines of code and the objects that their names refer to."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = dict(_NAMES)
        self._lines: list[str] = []
        self._bound: dict[int, str] = {}
        self._count = 0

    def line(self, depth: int, text: str) -> None:
        self._lines.append(_INDENT * depth + text)

    def mark(self) -> int:
        """The current position, for `insert`."""
        return len(self._lines)

    def insert(self, mark: int, depth: int, text: str) -> None:
        self._lines.insert(mark, _INDENT * depth + text)

    def fresh(self, stem: str) -> str:
        """A new local name."""
        self._count += 1
        return f"{stem}{self._count}"

    def bind(self, stem: str, value: Any) -> str:
        """The name of an object; the same name at each call."""
        if id(value) not in self._bound:
            name = self._bound[id(value)] = self.fresh(stem)
            self.names[name] = value
        return self._bound[id(value)]

    def literal(self, value: Any) -> str:
        """An expression for a default value."""
        plain = value is None or isinstance(value, bool | int | str | bytes) or value == ()
        return repr(value) if plain else self.bind("D", value)

    def functions(self, title: str) -> dict[str, Callable[..., Any]]:
        """Compile the source; the result has its functions by name."""
        exec(compile("\n".join(self._lines), title, "exec"), self.names)  # noqa: S102 - generated from our own declarations
        return self.names

    def __str__(self) -> str:
        return "\n".join(self._lines)
