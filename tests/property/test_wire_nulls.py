"""P1: in each version the fields that may be null are those of Kafka's schemas, as kio has them.

Values that are drawn from our own layouts do not show a field that refuses a null which Kafka allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args, get_type_hints

from tests.property.test_wire import KIO_LACKS, MESSAGES, kio_type

from rota.protocol.constructs import List, Maybe, Shape, Sized, Tags
from rota.protocol.wire import layout


def fields_of(node: Shape) -> Iterator[tuple[str, Any]]:
    for part in node.subcon.subcons:
        for entry in part.subcon.known if isinstance(part.subcon, Tags) else (part,):
            if isinstance(entry.subcon, Sized | Maybe | Shape):
                yield entry.name, entry.subcon


def struct_in(node: Any) -> Shape | None:
    inner = node.item if isinstance(node, List) else node.subcon if isinstance(node, Maybe) else node
    return inner if isinstance(inner, Shape) else None


def nulls(node: Shape, theirs: Any, path: str) -> Iterator[tuple[str, bool, bool]]:
    """Each field that has a length or may be a struct: its name, whether it may be null here, and in kio."""
    hints = get_type_hints(theirs)
    for name, inner in fields_of(node):
        hint, is_nullable = hints[name], NoneType in get_args(hints[name])
        yield path + name, isinstance(inner, Maybe) or getattr(inner, "nullable", False), is_nullable
        if (struct := struct_in(inner)) is not None:
            found = get_args(hint)[0] if is_nullable else hint
            yield from nulls(struct, get_args(found)[0] if isinstance(inner, List) else found, f"{path}{name}.")


def test_what_is_nullable_is_what_is_nullable_in_kio() -> None:
    others, seen = list[str](), 0
    for message in MESSAGES:
        for version in message.VERSIONS:
            theirs = kio_type(message, version)
            if theirs is None:
                assert (message.__name__, version) in KIO_LACKS
                continue
            for name, here, there in nulls(layout(message, version), theirs, f"{message.__name__} {version}: "):
                seen += 1
                if here != there:
                    others.append(name)
    assert others == []
    assert seen > 1_900
