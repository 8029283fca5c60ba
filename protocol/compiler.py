"""From the declaration of a message to the two functions that read and write it.

`codec(HeartbeatRequest, 4)` walks the construct tree of `layout(HeartbeatRequest, 4)` once and compiles functions with
no interpretation left in them: about 0.5 us for a heartbeat where construct itself takes 40.

Laws
    W1  A length is checked against what is left of the frame before anything is allocated for it, and all arrays of one
        message together have at most ELEMENTS_MAX elements.
    W2  Garbage raises DecodeError, and nothing but DecodeError.
    W3  The functions do what `layout(...)` does: tests hold them equal for every message and version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import construct as c

from rota.protocol.constructs import Shape
from rota.protocol.reading import Reader
from rota.protocol.source import Source
from rota.protocol.wire import layout
from rota.protocol.writing import Writer

M = TypeVar("M")


@dataclass(slots=True)
class Codec(Generic[M]):
    """How one version of a message is read and written.

    `decode(buffer, position=0)` gives (message, end); trailing bytes are the caller's business. It wants `bytes`: any
    other buffer is copied once. Raises DecodeError.
    `encode(message)` gives the bytes. A value that the wire cannot hold is a mistake of ours and raises what it raises.
    `parts(message)` gives the same bytes in pieces for writev: record batches of more than a kilobyte are not copied.
    """

    decode: Callable[..., tuple[M, int]]
    encode: Callable[[M], bytes]
    parts: Callable[[M], list[bytes | memoryview]]


_codecs: dict[tuple[type, int], Codec[Any]] = {}


def codec(message: type[M], version: int) -> Codec[M]:
    """The codec of one version, made when it is first asked for. ValueError when there is no such version."""
    found = _codecs.get((message, version))
    if found is None:
        found = _codecs[message, version] = _compiled(message, version)
    return found


def field_writer(
    message: type, version: int, lead: bytes = b"", only: tuple[str, ...] | None = None
) -> Callable[..., bytes]:
    """`pack(*fields)`: `lead` and then what `encode` gives for a message of these fields, without making one.

    The fields are those of that version in the order of their declaration, the tagged ones last; or `only` some that
    stand side by side, so that what changes seldom need not be written again. Made anew each time.
    """
    node, emitted = layout(message, version), Source()
    if only is not None:
        node = Shape(c.Struct(*(part for part in node.subcon.subcons if part.name in only)), message)
    Writer(emitted).fields(node, lead)
    return emitted.functions(f"<fields of {message.__name__} v{version}>")["pack"]


def source(message: type, version: int) -> str:
    """The Python source of both functions, for people."""
    return str(_emitted(message, version))


def _emitted(message: type, version: int) -> Source:
    node, emitted = layout(message, version), Source()
    Reader(emitted).message(node)
    Writer(emitted).message(node)
    return emitted


def _compiled(message: type, version: int) -> Codec[Any]:
    made = _emitted(message, version).functions(f"<{message.__name__} v{version}>")
    return Codec(decode=made["decode"], encode=made["encode"], parts=made["parts"])
