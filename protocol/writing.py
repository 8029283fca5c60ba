"""The encoding half of the compiler: from a tree of construct types to the source of `encode(m)`.

The generated code collects byte strings: expressions are collected up to the next array and then added to the list `o`
in one statement; a message without arrays is one `join` of a tuple. A message with record batches has `parts(m)`, whose
list `d` has the batches uncopied between the joined bytes around them, for writev.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rota.protocol.construct_library import c
from rota.protocol.constructs import UUID, UVARINT, List, Maybe, RecordSet, Shape, Sized, Tagged, Tags, Text
from rota.protocol.source import Source, fixed_code, packer
from rota.protocol.varint import uvarint


class Writer:
    """Generates the encoder of one message."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._run: list[tuple[str, str]] = []  # (expression, struct code), not yet packed
        self._pending: list[str] = []  # expressions of bytes, not yet in `o`
        self._listed = False  # whether the code uses `o`

    def message(self, node: Shape) -> None:
        """Emit `encode` and `parts`."""
        if _has_records(node):
            self.function("parts", node, "d + [join(o)]", first="d = []")
            self._source.line(0, "def encode(m): return join(parts(m))")
        else:
            self.function("encode", node, "join(o)")
            self._source.line(0, "def parts(m): return [encode(m)]")

    def fields(self, node: Shape, lead: bytes) -> None:
        """Emit `pack`: the bytes `lead` and the encoding of the fields, which are positional arguments."""
        if lead:
            self._piece(repr(lead))
        self.function("pack", node, "join(o)", value="", of=", ".join(_names(node)))

    def function(
        self, name: str, node: c.Construct, result: str, first: str = "", *, value: str = "m", of: str = "m"
    ) -> None:
        """Emit one function of the value `m`."""
        source = self._source
        source.line(0, f"def {name}({of}):")
        mark = source.mark()
        self._value(node, value, 1)
        if self._listed or first:
            self._spill(1)
            source.insert(mark, 1, f"o = []; {first}")
            source.line(1, f"return {result}")
        else:
            self._pack()
            pieces, self._pending = self._pending or ["b''"], []
            source.line(1, f"return join(({', '.join(pieces)}))" if len(pieces) > 1 else f"return {pieces[0]}")

    def _pack(self) -> None:
        """Emit one `pack` for the collected fields of fixed size."""
        if self._run:
            pack = self._source.bind("w", packer("".join(code for _, code in self._run)).pack)
            self._pending.append(f"{pack}({', '.join(expression for expression, _ in self._run)})")
            self._run.clear()

    def _spill(self, depth: int) -> None:
        """Emit the pending expressions into `o` before the code branches."""
        self._pack()
        self._listed = True
        if len(self._pending) == 1:
            self._source.line(depth, f"o.append({self._pending[0]})")
        elif self._pending:
            self._source.line(depth, f"o += ({', '.join(self._pending)})")
        self._pending.clear()

    def _piece(self, expression: str) -> None:
        self._pack()
        self._pending.append(expression)

    def _value(self, node: c.Construct, value: str, depth: int) -> None:
        code = fixed_code(node)
        if code is not None:
            self._run.append((value, code))
            return
        match node:
            case Shape():
                self._shape(node, value, depth)
            case Maybe():
                self._maybe(node, value, depth)
            case List():
                self._list(node, value, depth)
            case Sized():
                self._sized(node, value, depth)
            case _:
                raise TypeError(f"cannot encode {node!r}")

    def _shape(self, node: Shape, value: str, depth: int) -> None:
        local = value if not value or value.isidentifier() else self._source.fresh("v")
        if local != value:
            self._source.line(depth, f"{local} = {value}")
        for part in node.subcon.subcons:
            if isinstance(part.subcon, Tags):
                self._tags(part.subcon, local)
            else:
                self._value(part.subcon, _field(local, part.name), depth)

    def _length(self, node: Sized, local: str) -> None:
        """Emit the length in `local`, as encoded: flexible lengths plus one, null as its number."""
        if node.prefix is UVARINT:
            self._piece(f"SMALL[{local}] if {local} < 128 else uvarint({local})")
        else:
            self._run.append((local, str(fixed_code(node.prefix))))

    def _measured(self, node: Sized, value: str, depth: int, nothing: str, convert: str = "") -> tuple[str, str]:
        """Emit the measuring of a value; returns (local of the value or `nothing`, local of its encoded length)."""
        line = self._source.line
        local, length = self._source.fresh("v"), self._source.fresh("k")
        line(depth, f"{local} = {value}")
        if node.nullable:
            line(depth, f"if {local} is None: {local} = {nothing}; {length} = {int(node.flexible) - 1}")
            line(depth, "else:")
            depth += 1
        step = f"{local} = {local}{convert}; " if convert else ""
        line(depth, f"{step}{length} = len({local}){' + 1' if node.flexible else ''}")
        return local, length

    def _sized(self, node: Sized, value: str, depth: int) -> None:
        local, length = self._measured(node, value, depth, "b''", ".encode()" if isinstance(node, Text) else "")
        self._length(node, length)
        if not isinstance(node, RecordSet):
            self._piece(local)
            return
        self._spill(depth)
        self._source.line(depth, f"if len({local}) <= RECORDS_COPIED_BYTES_MAX: o.append({local})")
        self._source.line(depth, f"else: d += (join(o), {local}); o.clear()")

    def _list(self, node: List, value: str, depth: int) -> None:
        local, length = self._measured(node, value, depth, "()")
        self._length(node, length)
        code = fixed_code(node.item)
        if code is not None:
            self._piece(f"join({local})" if node.item is UUID else f"pack(f'>{{len({local})}}{code}', *{local})")
            return
        self._spill(depth)
        item, mark = self._source.fresh("v"), self._source.mark()
        self._value(node.item, item, depth + 1)
        if mark == self._source.mark() and self._run and not self._pending:
            self._pack()
            self._source.line(depth, f"o += [{self._pending.pop()} for {item} in {local}]")
            return
        self._spill(depth + 1)
        self._source.insert(mark, depth, f"for {item} in {local}:")

    def _maybe(self, node: Maybe, value: str, depth: int) -> None:
        local = self._source.fresh("v")
        self._spill(depth)
        self._source.line(depth, f"{local} = {value}")
        self._source.line(depth, f"if {local} is None: o.append({node.null.to_bytes(1, signed=True)!r})")
        self._source.line(depth, "else:")
        self._piece("b'\\x01'")
        self._value(node.subcon, local, depth + 1)
        self._spill(depth + 1)

    def _tags(self, node: Tags, owner: str) -> None:
        if not node.known:
            if self._run:
                self._run.append(("0", "B"))
            else:
                self._piece("b'\\x00'")
            return
        if len(node.known) == 1 and self._single_tag(*node.known, owner):
            return
        conditions, pairs = [], []
        for tagged in sorted(node.known):
            value = _field(owner, tagged.name)
            writer = self._source.bind("t", _value_writer(tagged.subcon))
            conditions.append(_is_written(tagged, value, self._source))
            pairs.append(f"({tagged.tag}, {writer}({value})) if {conditions[-1]} else None")
        self._piece(f"tag_section(({', '.join(pairs)},)) if {' or '.join(conditions)} else b'\\x00'")

    def _single_tag(self, field: Tagged, owner: str) -> bool:
        """Emit one tagged field of fixed size, packed with the fields before it. False when it has another size."""
        code = fixed_code(field.subcon)
        if code is None:
            return False
        value = _field(owner, field.name)
        lead = uvarint(1) + uvarint(field.tag) + uvarint(packer(code).size)
        before, self._run = self._run, []
        self._run = [*before, (self._source.literal(lead), f"{len(lead)}s"), (value, code)]
        self._pack()
        self._run = [*before, ("0", "B")]
        self._pack()
        without, written = self._pending.pop(), self._pending.pop()
        self._piece(f"{written} if {_is_written(field, value, self._source)} else {without}")
        return True


def _names(node: Shape) -> list[str]:
    """The fields of one version, tagged fields last."""
    names: list[str] = []
    for part in node.subcon.subcons:
        names += [tagged.name for tagged in part.subcon.known] if isinstance(part.subcon, Tags) else [part.name]
    return names


def _field(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def _is_written(field: Tagged, value: str, source: Source) -> str:
    if field.is_always_written:
        return "True"
    if field.default is None:
        return f"{value} is not None"
    return f"{value} != {source.literal(field.default)}"


def _value_writer(node: c.Construct) -> Callable[[Any], bytes]:
    """A function that encodes one value: the size of a tagged field is needed before its bytes."""
    source = Source()
    Writer(source).function("encode", node, "join(o)")
    return source.functions("<tagged field>")["encode"]


def _has_records(node: c.Construct) -> bool:
    match node:
        case RecordSet():
            return True
        case List():
            return _has_records(node.item)
        case Shape():
            return any(_has_records(part.subcon) for part in node.subcon.subcons)
        case _:
            return False
