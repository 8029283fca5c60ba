"""Declare a message: a slotted dataclass whose fields name their wire type; versions are data.

    @wired
    class HeartbeatRequest:
        KEY, VERSIONS, FLEXIBLE = 12, range(0, 5), 4

        group_id: str = wire(String)
        group_instance_id: str | None = wire(String, since=3, nullable_since=3, default=None)

`layout(HeartbeatRequest, 4)` is the construct Struct of that version, to print, debug and compile. The declaration is
the only definition of a layout; field names are those of Kafka's schemas in snake_case.

Laws
    A field that a version does not have is not encoded, and has its default when decoded.
    null in a field that is not nullable in the version is a DecodeError.
    A tagged field is encoded only when it differs from its default; unknown tagged fields are skipped.

Messages are slotted and not frozen: a frozen dataclass takes twice as long to decode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import Any, ClassVar, Final, Protocol, TypeVar, cast, dataclass_transform

from rota.protocol.construct_library import c
from rota.protocol.constructs import (
    ELEMENTS_MAX,
    TAGS_MAX,
    UUID,
    UUID_BYTES,
    UVARINT,
    DecodeError,
    List,
    Maybe,
    Octets,
    RecordSet,
    Shape,
    Tagged,
    Tags,
    Text,
)
from rota.protocol.dataclass import dataclass

__all__ = [
    "ELEMENTS_MAX",
    "NEVER",
    "TAGS_MAX",
    "UUID_ZERO",
    "Array",
    "Blob",
    "Bool",
    "DecodeError",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Message",
    "Nested",
    "Records",
    "String",
    "UInt16",
    "UInt32",
    "Uuid",
    "layout",
    "wire",
    "wired",
]

NEVER: Final = 1 << 15  # above the versions of all APIs
UUID_ZERO: Final = bytes(UUID_BYTES)  # "no topic id"


T = TypeVar("T")


class Message(Protocol):
    """The attributes that `layout` and the compiler read; an API's message also has a KEY."""

    VERSIONS: ClassVar[range]
    FLEXIBLE: ClassVar[int]


Kind = Callable[[int, bool, bool], c.Construct]  # (version, flexible, nullable) -> construct type


def _fixed(subcon: c.Construct) -> Kind:
    def kind(version: int, flexible: bool, nullable: bool) -> c.Construct:
        assert not nullable, "a field of fixed size cannot be null"
        return subcon

    return kind


Int8, Int16, Int32, Int64 = map(_fixed, (c.Int8sb, c.Int16sb, c.Int32sb, c.Int64sb))
UInt16, UInt32 = map(_fixed, (c.Int16ub, c.Int32ub))
Float64, Bool = map(_fixed, (c.Float64b, c.Flag))
Uuid = _fixed(UUID)  # 16 bytes, not a uuid.UUID: topic ids are compared far more often than they are shown


def String(version: int, flexible: bool, nullable: bool) -> c.Construct:
    """UTF-8 text; int16 length or compact."""
    return Text(UVARINT if flexible else c.Int16sb, flexible=flexible, nullable=nullable)


def Blob(version: int, flexible: bool, nullable: bool) -> c.Construct:
    """Bytes; int32 length or compact."""
    return Octets(UVARINT if flexible else c.Int32sb, flexible=flexible, nullable=nullable)


def Records(version: int, flexible: bool, nullable: bool) -> c.Construct:
    """Record batches: decoded as a memoryview of the frame, encoded from a bytes-like object (item size 1) or None."""
    return RecordSet(UVARINT if flexible else c.Int32sb, flexible=flexible, nullable=nullable)


def Array(item: Kind | type) -> Kind:
    """A tuple of a kind or of a nested dataclass."""
    inner = Nested(item) if isinstance(item, type) else item

    def kind(version: int, flexible: bool, nullable: bool) -> c.Construct:
        prefix = UVARINT if flexible else c.Int32sb
        return List(prefix, inner(version, flexible, False), flexible=flexible, nullable=nullable)

    return kind


def Nested(message: type) -> Kind:
    """A nested dataclass; a nullable one has a presence byte before it."""

    def kind(version: int, flexible: bool, nullable: bool) -> c.Construct:
        shape = _shape(message, version, flexible)
        return Maybe(shape) if nullable else shape

    return kind


def wire(
    kind: Kind,
    *,
    since: int = 0,
    until: int = NEVER,
    nullable_since: int | None = None,
    tag: int | None = None,
    default: Any = MISSING,
) -> Any:
    """Declare a field: its kind, its first and last version, the first version in which it may be null, its tag.

    A tagged nested dataclass has the default None, which means "not written"; a nullable one is always written.
    """
    spec = {"kind": kind, "since": since, "until": until, "nullable_since": nullable_since, "tag": tag}
    return field(default=default, metadata={"wire": spec})


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def wired(declared: type[T]) -> type[T]:
    """As `@dataclass(slots=True, kw_only=True)`, for fields that are declared by `wire`."""
    message: Any = dataclass(slots=True, kw_only=True)(declared)
    return cast(type[T], message)


@cache
def layout(message: Any, version: int) -> Shape:
    """The construct type of a message in one version. Raises ValueError for an unknown version."""
    if version not in message.VERSIONS:
        raise ValueError(f"{message.__name__} has no version {version}")
    return _shape(message, version, version >= message.FLEXIBLE)


def _shape(message: Any, version: int, flexible: bool) -> Shape:
    plain, tagged = [], []
    for declared in fields(message):
        spec = declared.metadata["wire"]
        if not spec["since"] <= version <= spec["until"]:
            name = f"{message.__name__}.{declared.name}"
            assert declared.default is not MISSING, f"{name} is not in every version: give a default"
            continue
        if spec["tag"] is None:
            plain.append(declared.name / _construct(declared, version, flexible))
        else:
            assert flexible, f"{message.__name__}.{declared.name} is tagged in a version without tags"
            subcon = _construct(declared, version, flexible)
            if isinstance(subcon, Maybe):
                subcon = Maybe(subcon.subcon, null=0)
            tagged.append(Tagged(spec["tag"], declared.name, subcon, declared.default))
    tail = ["_tags" / Tags(tuple(tagged))] if flexible else []
    return Shape(c.Struct(*plain, *tail), message)


def _construct(declared: Field[Any], version: int, flexible: bool) -> c.Construct:
    spec = declared.metadata["wire"]
    nullable = spec["nullable_since"] is not None and version >= spec["nullable_since"]
    return spec["kind"](version, flexible, nullable)
