"""The construct types that Kafka's wire is made of: the reference, read by people, by tests and by the compiler.

They parse and build by themselves, slowly; `protocol/compiler.py` turns a tree of them into straight-line code, and the
tests hold the two equal. Nothing else in the project parses with them.

Laws
    W1  A length is checked against what is left of the frame before anything is allocated for it.
    W2  Garbage raises DecodeError (here: a ConstructError, which `layout(...)` users see), and nothing else.
    W4  A text that was read can be written again, in any version: it has TEXT_BYTES_MAX bytes of UTF-8 at most.
"""

# mypy: disable-error-code="misc"
# construct has no annotations, so every class here derives from Any.

from __future__ import annotations

from codecs import register_error
from dataclasses import fields
from typing import Any, Final, NamedTuple

import construct as c

ELEMENTS_MAX: Final = 1_000_000  # of all arrays of one message together
TAGS_MAX: Final = 10_000  # tagged fields in one place
VARINT_BYTES_MAX: Final = 5
UUID_BYTES: Final = 16
TEXT_BYTES_MAX: Final = 0x7FFF  # what a length of two bytes can say; Kafka refuses more where lengths are varints, too
GARBLED_BYTES_MAX: Final = TEXT_BYTES_MAX // 3  # of a text that is not UTF-8: what replaces a byte has three
GARBLED: Final = "rota.garbled"  # the error handler for such texts


class DecodeError(ValueError):
    """The bytes are not a message of this API and version."""


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """U+FFFD for what is not UTF-8. Called once for each text: the rest of it is decoded here."""
    assert isinstance(error, UnicodeDecodeError)
    raw = error.object
    if len(raw) > GARBLED_BYTES_MAX:
        raise DecodeError("a long text that is not UTF-8")
    return raw[error.start :].decode("utf-8", "replace"), len(raw)


register_error(GARBLED, _replaced)


class UVarInt(c.Construct):
    """Seven bits a byte, the lowest first, at most five bytes (KIP-482)."""

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
    """A value behind its length. null is a negative length (legacy) or 0 (flexible: lengths are stored plus one)."""

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
    """Record batches, opaque here. The compiled reader gives a memoryview of the frame instead of a copy."""


class Text(Sized):
    """UTF-8 (W4). Bytes that are not are replaced by U+FFFD, as Java does; a long text of them is refused."""

    def _raw(self, obj: str) -> bytes:
        return obj.encode()

    def _parse_body(self, length: int, stream: Any, context: Any, path: str) -> str:
        if length > TEXT_BYTES_MAX:
            raise c.RangeError("a text that no other version could carry", path=path)
        return str(c.stream_read(stream, length, path).decode("utf-8", GARBLED))


class List(Sized):
    """A tuple of one type."""

    def __init__(self, prefix: c.Construct, item: c.Construct, *, flexible: bool, nullable: bool) -> None:
        super().__init__(prefix, flexible=flexible, nullable=nullable)
        self.item = item

    def _parse_body(self, length: int, stream: Any, context: Any, path: str) -> tuple[Any, ...]:
        if length > ELEMENTS_MAX:
            raise c.RangeError("more elements than any message may have", path=path)
        return tuple(self.item._parsereport(stream, context, path) for _ in range(length))

    def _build_body(self, raw: Any, stream: Any, context: Any, path: str) -> None:
        for one in raw:
            self.item._build(one, stream, context, path)


class Tagged(NamedTuple):
    """One field of the tag section; its default is what stands for "not written"."""

    tag: int
    name: str
    subcon: c.Construct
    default: Any


class Tags(c.Construct):
    """The tag section of a flexible version (KIP-482): known fields by their number, unknown ones are skipped."""

    def __init__(self, known: tuple[Tagged, ...] = ()) -> None:
        super().__init__()
        self.known = known

    def _parse(self, stream: Any, context: Any, path: str) -> dict[str, Any]:
        found = {one.name: one.default for one in self.known}
        by_tag = {one.tag: one for one in self.known}
        count = UVARINT._parsereport(stream, context, path)
        if count > TAGS_MAX:
            raise c.RangeError("too many tagged fields", path=path)
        for _ in range(count):
            one = by_tag.get(UVARINT._parsereport(stream, context, path))
            raw = c.stream_read(stream, UVARINT._parsereport(stream, context, path), path)
            if one is not None:
                found[one.name] = c.Sequence(one.subcon, c.Terminated).parse(raw)[0]
        return found

    def _build(self, obj: dict[str, Any], stream: Any, context: Any, path: str) -> Any:
        written = [one for one in self.known if obj[one.name] != one.default]
        UVARINT._build(len(written), stream, context, path)
        for one in sorted(written):
            raw = one.subcon.build(obj[one.name])
            UVARINT._build(one.tag, stream, context, path)
            UVARINT._build(len(raw), stream, context, path)
            c.stream_write(stream, raw, len(raw), path)
        return obj


class Shape(c.Adapter):
    """A dataclass around the Struct of one version. Fields that the version does not have keep their default."""

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
    """A nested struct that may be null: an int8, negative for null and 1 otherwise, before it."""

    def __init__(self, subcon: Shape) -> None:
        super().__init__()
        self.subcon = subcon

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        if c.Int8sb._parsereport(stream, context, path) < 0:
            return None
        return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        c.Int8sb._build(-1 if obj is None else 1, stream, context, path)
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj
