"""The construct types of Kafka's wire format: the reference for readers, tests and the compiler.

They parse and build by themselves, slowly. `protocol/compiler.py` compiles a tree of them into straight-line code, and
tests compare the two. No other code parses with them.

Laws
    W1  A length is checked against what is left of the frame before anything is allocated for it.
    W2  Garbage raises DecodeError (from these types themselves: ConstructError), and no other exception.
    W4  A decoded string can be encoded in any version: it has at most TEXT_BYTES_MAX bytes of UTF-8.
"""

# mypy: disable-error-code="misc"
# construct has no annotations, so every class here derives from Any.

from __future__ import annotations

from codecs import register_error
from dataclasses import fields
from typing import Any, Final, NamedTuple

from rota.protocol.construct_library import c

ELEMENTS_MAX: Final = 1_000_000  # of all arrays of one message together
TAGS_MAX: Final = 10_000  # tagged fields in one place
VARINT_BYTES_MAX: Final = 5
UUID_BYTES: Final = 16
TEXT_BYTES_MAX: Final = 0x7FFF  # of a length of two bytes; Kafka applies it also where lengths are varints
GARBLED_BYTES_MAX: Final = TEXT_BYTES_MAX // 3  # of a string that is not UTF-8: a replacement has three bytes
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


class UVarInt(c.Construct):
    """Unsigned varint: seven bits in each byte, low bits first, at most five bytes (KIP-482)."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for shift in range(0, 7 * VARINT_BYTES_MAX, 7):
            byte = c.stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return int(value)
        raise c.IntegerError("varint longer than five bytes", path=path)

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:
        left = obj
        while left >= 0x80:
            c.stream_write(stream, bytes([left & 0x7F | 0x80]), 1, path)
            left >>= 7
        c.stream_write(stream, bytes([left]), 1, path)
        return obj


UVARINT: Final = UVarInt()
UUID: Final = c.Bytes(UUID_BYTES)


class Sized(c.Construct):
    """A length and a value. null is a negative length, in flexible versions 0 (lengths are stored plus one)."""

    def __init__(self, prefix: c.Construct, *, flexible: bool, nullable: bool) -> None:
        super().__init__()
        self.prefix, self.flexible, self.nullable = prefix, flexible, nullable

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        length = int(self.prefix._parsereport(stream, context, path)) - self.flexible
        if length >= 0:
            return self._parse_body(length, stream, context, path)
        if not self.nullable:
            raise c.CheckError("null in a field that has none", path=path)
        return None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None and not self.nullable:
            raise c.CheckError("null in a field that has none", path=path)
        raw = None if obj is None else self._raw(obj)
        length = -1 if raw is None else len(raw)
        self.prefix._build(length + self.flexible, stream, context, path)
        if raw is not None:
            self._build_body(raw, stream, context, path)
        return obj

    def _raw(self, obj: Any) -> Any:
        return obj

    def _parse_body(self, length: int, stream: Any, context: Any, path: str) -> Any:
        return c.stream_read(stream, length, path)

    def _build_body(self, raw: Any, stream: Any, context: Any, path: str) -> None:
        c.stream_write(stream, bytes(raw), len(raw), path)


class Octets(Sized):
    """Plain bytes."""


class RecordSet(Sized):
    """Record batches, not parsed. The compiled decoder returns a memoryview of the frame instead of a copy."""


class Text(Sized):
    """UTF-8 (W4). Invalid bytes are replaced by U+FFFD, as in Java; a long string with invalid bytes is refused."""

    def _raw(self, obj: str) -> bytes:
        return obj.encode()

    def _parse_body(self, length: int, stream: Any, context: Any, path: str) -> str:
        if length > TEXT_BYTES_MAX:
            raise c.RangeError("a text that no other version could carry", path=path)
        return str(c.stream_read(stream, length, path).decode("utf-8", GARBLED))


class List(Sized):
    """An array: a tuple of values of one type."""

    def __init__(self, prefix: c.Construct, item: c.Construct, *, flexible: bool, nullable: bool) -> None:
        super().__init__(prefix, flexible=flexible, nullable=nullable)
        self.item = item

    def _parse_body(self, length: int, stream: Any, context: Any, path: str) -> tuple[Any, ...]:
        if length > ELEMENTS_MAX:
            raise c.RangeError("more elements than any message may have", path=path)
        return tuple(self.item._parsereport(stream, context, path) for _ in range(length))

    def _build_body(self, raw: Any, stream: Any, context: Any, path: str) -> None:
        for item in raw:
            self.item._build(item, stream, context, path)


class Tagged(NamedTuple):
    """A tagged field. A value that equals the default is not written."""

    tag: int
    name: str
    subcon: c.Construct
    default: Any

    @property
    def is_always_written(self) -> bool:
        """A nullable struct is written also where it is null, as Kafka's generated code does."""
        return isinstance(self.subcon, Maybe)


class Tags(c.Construct):
    """The tag section of a flexible version (KIP-482). Fields with unknown tags are skipped."""

    def __init__(self, known: tuple[Tagged, ...] = ()) -> None:
        super().__init__()
        self.known = known

    def _parse(self, stream: Any, context: Any, path: str) -> dict[str, Any]:
        values = {field.name: field.default for field in self.known}
        by_tag = {field.tag: field for field in self.known}
        count = UVARINT._parsereport(stream, context, path)
        if count > TAGS_MAX:
            raise c.RangeError("too many tagged fields", path=path)
        for _ in range(count):
            field = by_tag.get(UVARINT._parsereport(stream, context, path))
            raw = c.stream_read(stream, UVARINT._parsereport(stream, context, path), path)
            if field is not None:
                values[field.name] = c.Sequence(field.subcon, c.Terminated).parse(raw)[0]
        return values

    def _build(self, obj: dict[str, Any], stream: Any, context: Any, path: str) -> Any:
        written = [field for field in self.known if field.is_always_written or obj[field.name] != field.default]
        UVARINT._build(len(written), stream, context, path)
        for field in sorted(written):
            raw = field.subcon.build(obj[field.name])
            UVARINT._build(field.tag, stream, context, path)
            UVARINT._build(len(raw), stream, context, path)
            c.stream_write(stream, raw, len(raw), path)
        return obj


class Shape(c.Adapter):
    """Converts the Struct of one version to a dataclass. Fields that the version does not have keep their default."""

    def __init__(self, subcon: c.Struct, made: type) -> None:
        super().__init__(subcon)
        self.made = made

    def _decode(self, obj: Any, context: Any, path: str) -> Any:
        values = dict(obj.items())
        values.update(values.pop("_tags", {}))
        return self.made(**{name: value for name, value in values.items() if not name.startswith("_")})

    def _encode(self, obj: Any, context: Any, path: str) -> Any:
        values = {f.name: getattr(obj, f.name) for f in fields(self.made)}
        return {**values, "_tags": values}


class Maybe(c.Construct):
    """A nullable nested struct: after an int8 that is 1, or `null`: -1, or 0 as the value of a tagged field."""

    def __init__(self, subcon: Shape, null: int = -1) -> None:
        super().__init__()
        self.subcon, self.null = subcon, null

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        if c.Int8sb._parsereport(stream, context, path) <= self.null:
            return None
        return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        c.Int8sb._build(self.null if obj is None else 1, stream, context, path)
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj
