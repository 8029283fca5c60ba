"""The decoding half of the compiler: from a tree of construct types to the source of `decode(b, p)`.

The generated code has the variables `b` (the frame, bytes), `p` (the position), `e` (the end of the frame), `n` (the
last length read), `q` (the end of a value) and `left` (the number of array elements that the message may still have).
One `struct` call reads adjacent fields of fixed size and the length after them. Objects are created with
`object.__new__` and attribute assignments, which takes a third of the time of a dataclass's `__init__`.
"""

from __future__ import annotations

from dataclasses import fields

from rota.protocol.construct_library import c
from rota.protocol.constructs import (
    GARBLED,
    UUID,
    UUID_BYTES,
    UVARINT,
    List,
    Maybe,
    Octets,
    RecordSet,
    Shape,
    Sized,
    Tags,
    Text,
)
from rota.protocol.source import Source, fixed_code, packer

_BODIES = {
    Text: "b[{}:q].decode('utf-8', '" + GARBLED + "')",
    Octets: "b[{}:q]",
    RecordSet: "view(b)[{}:q]",
}


class Reader:
    """Generates the decoder of one message."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._run: list[tuple[str, str]] = []  # (local, struct code) of fields of fixed size that are not yet read

    def message(self, node: Shape) -> None:
        line = self._source.line
        line(0, "def decode(b, p=0):")
        line(1, "if b.__class__ is not bytes: b = bytes(b)")
        line(1, "e = len(b); left = ELEMENTS_MAX")
        line(1, "try:")
        self._value(node, "m", 2)
        line(1, "except (IndexError, StructError) as cause:")
        line(2, "raise DecodeError('message longer than its frame') from cause")
        line(1, "if p > e: raise DecodeError('message longer than its frame')")
        line(1, "return m, p")

    def _value(self, node: c.Construct, local: str, depth: int) -> None:
        code = fixed_code(node)
        if code is not None:
            self._run.append((local, code))
            return
        match node:
            case Shape():
                self._shape(node, local, depth)
            case Maybe():
                self._maybe(node, local, depth)
            case List():
                self._list(node, local, depth)
            case Sized():
                self._sized(node, local, depth)
            case _:
                raise TypeError(f"cannot decode {node!r}")

    def _flush(self, depth: int, back: int = 0) -> None:
        """Emit the read of the collected fields of fixed size; `p` ends `back` bytes before their end."""
        if not self._run:
            return
        packed = packer("".join(code for _, code in self._run))
        unpack = self._source.bind("u", packed.unpack_from)
        targets = ", ".join(local for local, _ in self._run)
        self._source.line(depth, f"{targets}, = {unpack}(b, p); p += {packed.size - back}")
        self._run.clear()

    def _length(self, node: Sized, depth: int) -> None:
        """Emit the read of a length into `n` as encoded. Compact: one more than the length, `p` on its last byte."""
        line = self._source.line
        if node.prefix is not UVARINT:
            self._run.append(("n", str(fixed_code(node.prefix))))
            self._flush(depth)
            return
        if self._run:
            self._run.append(("n", "B"))
            self._flush(depth, back=1)
        else:
            line(depth, "n = b[p]")
        line(depth, f"if n > 127: n, p = {'text_size' if isinstance(node, Text) else 'read_uvarint'}(b, p); p -= 1")

    def _null(self, node: Sized, local: str, depth: int) -> int:
        """Emit the handling of null; returns the depth of the code for the value."""
        null = "not n" if node.flexible else "n < 0"
        if not node.nullable:
            self._source.line(depth, f"if {null}: raise DecodeError('null in a field that has none')")
            return depth
        self._source.line(depth, f"if {null}: {local} = None{'; p += 1' if node.flexible else ''}")
        self._source.line(depth, "else:")
        return depth + 1

    def _sized(self, node: Sized, local: str, depth: int) -> None:
        self._length(node, depth)
        depth = self._null(node, local, depth)
        self._source.line(depth, "q = p + n")
        self._source.line(depth, "if q > e: raise DecodeError('field longer than its frame')")
        start = "p + 1" if node.flexible else "p"
        empty = f" if n > {int(node.flexible)} else ''" if isinstance(node, Text) else ""  # skips most decode() calls
        self._source.line(depth, f"{local} = {_BODIES[type(node)].format(start)}{empty}; p = q")

    def _list(self, node: List, local: str, depth: int) -> None:
        line = self._source.line
        self._length(node, depth)
        depth = self._null(node, local, depth)
        if node.flexible:
            line(depth, "n -= 1; p += 1")
        line(depth, "left -= n")
        line(depth, f"if n * {_bytes_min(node.item)} > e - p or left < 0: raise DecodeError('array beyond its limits')")
        code = fixed_code(node.item)
        if node.item is UUID:
            line(
                depth,
                f"{local} = tuple([b[i : i + {UUID_BYTES}] for i in range(p, p + n * {UUID_BYTES}, {UUID_BYTES})])",
            )
            line(depth, f"p += n * {UUID_BYTES}")
            return
        if code is not None:
            line(depth, f"{local} = unpack_from(f'>{{n}}{code}', b, p); p += n * {node.item.sizeof()}")
            return
        items, item = self._source.fresh("l"), self._source.fresh("v")
        line(depth, f"{items} = []")
        line(depth, "for _ in range(n):")
        self._value(node.item, item, depth + 1)
        line(depth + 1, f"{items}.append({item})")
        line(depth, f"{local} = tuple({items})")

    def _maybe(self, node: Maybe, local: str, depth: int) -> None:
        self._run.append(("n", "b"))
        self._flush(depth)
        self._source.line(depth, f"if n <= {node.null}: {local} = None")
        self._source.line(depth, "else:")
        self._value(node.subcon, local, depth + 1)

    def _shape(self, node: Shape, local: str, depth: int) -> None:
        """Emit the reads of all fields into locals, then the creation of the object."""
        found: dict[str, str] = {}
        for part in node.subcon.subcons:
            if isinstance(part.subcon, Tags):
                self._tags(part.subcon, found, depth)
            else:
                found[part.name] = self._source.fresh("v")
                self._value(part.subcon, found[part.name], depth)
        self._flush(depth)
        made = self._source.bind("C", node.made)
        stores = [f"{local} = new({made})"]
        for field in fields(node.made):
            stores.append(f"{local}.{field.name} = {found.get(field.name) or self._source.literal(field.default)}")
        self._source.line(depth, "; ".join(stores))

    def _tags(self, node: Tags, found: dict[str, str], depth: int) -> None:
        line = self._source.line
        for field in node.known:
            found[field.name] = self._source.fresh("v")
            line(depth, f"{found[field.name]} = {self._source.literal(field.default)}")
        if self._run:
            self._run.append(("n", "B"))
            self._flush(depth)
        else:
            line(depth, "n = b[p]; p += 1")
        line(depth, "if n:")
        line(depth + 1, "if n > 127: n, p = read_uvarint(b, p - 1)")
        if not node.known:
            line(depth + 1, "p = skip_tags(b, p, n)")
            return
        line(depth + 1, "if n > TAGS_MAX: raise DecodeError('too many tagged fields')")
        line(depth + 1, "for _ in range(n):")
        tag, end = self._source.fresh("t"), self._source.fresh("z")
        line(depth + 2, f"{tag}, p, {end} = read_tag(b, p)")
        for field in node.known:
            line(depth + 2, f"if {tag} == {field.tag}:")
            self._value(field.subcon, found[field.name], depth + 3)
            self._flush(depth + 3)
            line(depth + 3, f"if p != {end}: raise DecodeError('tagged field of the wrong size')")
        line(depth + 2, f"p = {end}")


def _bytes_min(node: c.Construct) -> int:
    """The minimal number of bytes of a value of this type."""
    code = fixed_code(node)
    if code is not None:
        return packer(code).size
    if isinstance(node, Shape):
        return sum(_bytes_min(part.subcon) for part in node.subcon.subcons)
    if isinstance(node, Sized):
        return 1 if node.prefix is UVARINT else int(node.prefix.sizeof())
    return 1
