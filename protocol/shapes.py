"""The shape of a message in one version: the tree that `compiler` compiles and `constructs` turns into construct types.

A broker and a client load no more than this of a declaration: construct would be a tenth of an idle broker's memory.

Law
    W4  A decoded string can be encoded in any version: it has at most TEXT_BYTES_MAX bytes of UTF-8.
"""

from __future__ import annotations

import struct
from codecs import register_error
from typing import Any, Final, NamedTuple

ELEMENTS_MAX: Final = 1_000_000  # of all arrays of one message together
TAGS_MAX: Final = 10_000  # tagged fields in one place
VARINT_BYTES_MAX: Final = 5
UUID_BYTES: Final = 16
TEXT_BYTES_MAX: Final = 0x7FFF  # of a length of two bytes; Kafka applies it also where lengths are varints
GARBLED_BYTES_MAX: Final = TEXT_BYTES_MAX // 3  # of a string that is not UTF-8: a replacement has three bytes
TAGS: Final = "_tags"  # the section of tags, among the names of fields
GARBLED: Final = "rota.garbled"  # the error handler for such strings


class DecodeError(ValueError):
    """The bytes are not a message of this API and version."""


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Replace invalid UTF-8 by U+FFFD. Called once for each string: it decodes the rest of the string."""
    assert isinstance(error, UnicodeDecodeError)
    raw = error.object
    if len(raw) > GARBLED_BYTES_MAX:
        raise DecodeError("a long text that is not UTF-8")
    return raw[error.start :].decode("utf-8", "replace"), len(raw)


register_error(GARBLED, _replaced)


class Node:
    """A part of a message."""

    __slots__ = ()


class Fixed(Node):
    """A value of fixed size: its code in `struct`, big-endian."""

    __slots__ = ("code", "size")

    def __init__(self, code: str) -> None:
        self.code, self.size = code, struct.calcsize(f">{code}")


INT8, INT16, INT32, INT64 = map(Fixed, "bhiq")
UINT16, UINT32, FLOAT64, BOOL = map(Fixed, "HId?")
UUID: Final = Fixed(f"{UUID_BYTES}s")


class Sized(Node):
    """A length and a value. null is the length -1.

    In flexible versions the length plus one is an unsigned varint, in others the length is of the type `prefix`.
    """

    __slots__ = ("flexible", "nullable")
    prefix = INT32

    def __init__(self, *, flexible: bool, nullable: bool) -> None:
        self.flexible, self.nullable = flexible, nullable


class Octets(Sized):
    """Plain bytes."""

    __slots__ = ()


class RecordSet(Sized):
    """Record batches, not parsed: decoded as a memoryview of the frame."""

    __slots__ = ()


class Text(Sized):
    """UTF-8 (W4). Invalid bytes are replaced by U+FFFD, as in Java; a long string with invalid bytes is refused."""

    __slots__ = ()
    prefix = INT16


class List(Sized):
    """An array: a tuple of values of one type."""

    __slots__ = ("item",)

    def __init__(self, item: Node, *, flexible: bool, nullable: bool) -> None:
        super().__init__(flexible=flexible, nullable=nullable)
        self.item = item


class Part(NamedTuple):
    """A field that each message of the version has."""

    name: str
    node: Node


class Tagged(NamedTuple):
    """A tagged field. A value that equals the default is not written."""

    tag: int
    name: str
    node: Node
    default: Any

    @property
    def is_always_written(self) -> bool:
        """A nullable struct is written also where it is null, as Kafka's generated code does."""
        return isinstance(self.node, Maybe)


class Shape(Node):
    """The fields of a dataclass in one version, in their order; `tags` is None where there is no section of tags."""

    __slots__ = ("made", "parts", "tags")

    def __init__(self, made: type[Any], parts: tuple[Part, ...], tags: tuple[Tagged, ...] | None) -> None:
        self.made, self.parts, self.tags = made, parts, tags


class Maybe(Node):
    """A nullable nested struct: after an int8 that is 1, or `null`: -1, or 0 as the value of a tagged field."""

    __slots__ = ("null", "shape")

    def __init__(self, shape: Shape, null: int = -1) -> None:
        self.shape, self.null = shape, null
