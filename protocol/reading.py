"""The half of the compiler that writes `decode(b, p)`: a tree of construct types in, straight-line reads out.

The code it writes knows `b` (the frame, bytes), `p` (where we are), `e` (where the frame ends), `n` (the length just
read), `q` (where a value ends) and `left` (how many more array elements this message may have). Neighbouring fields of
fixed size, and the length behind them, are read by one `struct` call. Objects are made with `object.__new__` and plain
stores, which takes a third of the time of a dataclass's own `__init__`.
"""

from __future__ import annotations

from dataclasses import fields

import construct as c

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
    """Writes the reads of one message."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._run: list[tuple[str, str]] = []  # (local, struct code) of fields of fixed size, not yet read

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
                raise TypeError(f"no way to read {node!r}")

    def _flush(self, depth: int, back: int = 0) -> None:
        """Read the fields of fixed size that wait; `back` bytes are left to be stepped over later."""
        if not self._run:
            return
        packed = packer("".join(code for _, code in self._run))
        unpack = self._source.bind("u", packed.unpack_from)
        targets = ", ".join(local for local, _ in self._run)
        self._source.line(depth, f"{targets}, = {unpack}(b, p); p += {packed.size - back}")
        self._run.clear()

    def _length(self, node: Sized, depth: int) -> None:
        """Leaves in `n` the length as the wire has it. Compact: one more than the length, `p` on its last byte."""
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
        """Reads null, or refuses it; returns the depth at which the value itself is read."""
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
        some = (
            f" if n > {int(node.flexible)} else ''" if isinstance(node, Text) else ""
        )  # most texts that may be empty are
        self._source.line(depth, f"{local} = {_BODIES[type(node)].format(start)}{some}; p = q")

    def _list(self, node: List, local: str, depth: int) -> None:
        line = self._source.line
        self._length(node, depth)
        depth = self._null(node, local, depth)
        if node.flexible:
            line(depth, "n -= 1; p += 1")
        line(depth, "left -= n")
        line(
            depth, f"if n * {_least_bytes(node.item)} > e - p or left < 0: raise DecodeError('array beyond its limits')"
        )
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
        items, one = self._source.fresh("l"), self._source.fresh("v")
        line(depth, f"{items} = []")
        line(depth, "for _ in range(n):")
        self._value(node.item, one, depth + 1)
        line(depth + 1, f"{items}.append({one})")
        line(depth, f"{local} = tuple({items})")

    def _maybe(self, node: Maybe, local: str, depth: int) -> None:
        self._run.append(("n", "b"))
        self._flush(depth)
        self._source.line(depth, f"if n < 0: {local} = None")
        self._source.line(depth, "else:")
        self._value(node.subcon, local, depth + 1)

    def _shape(self, node: Shape, local: str, depth: int) -> None:
        """Reads all fields into locals, then makes the object: no object of ours is ever half made."""
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
        for one in fields(node.made):
            stores.append(f"{local}.{one.name} = {found.get(one.name) or self._source.literal(one.default)}")
        self._source.line(depth, "; ".join(stores))

    def _tags(self, node: Tags, found: dict[str, str], depth: int) -> None:
        line = self._source.line
        for one in node.known:
            found[one.name] = self._source.fresh("v")
            line(depth, f"{found[one.name]} = {self._source.literal(one.default)}")
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
        for one in node.known:
            line(depth + 2, f"if {tag} == {one.tag}:")
            self._value(one.subcon, found[one.name], depth + 3)
            self._flush(depth + 3)
            line(depth + 3, f"if p != {end}: raise DecodeError('tagged field of the wrong size')")
        line(depth + 2, f"p = {end}")


def _least_bytes(node: c.Construct) -> int:
    """How many bytes a value of this type takes at least."""
    code = fixed_code(node)
    if code is not None:
        return packer(code).size
    if isinstance(node, Shape):
        return sum(_least_bytes(part.subcon) for part in node.subcon.subcons)
    if isinstance(node, Sized):
        return 1 if node.prefix is UVARINT else int(node.prefix.sizeof())
    return 1
