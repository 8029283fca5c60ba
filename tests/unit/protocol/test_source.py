from __future__ import annotations

import construct as c

from rota.protocol.constructs import UUID, UVARINT
from rota.protocol.source import Source, fixed_code, packer


def test_fixed_sizes_have_a_code_and_others_none() -> None:
    kinds = [c.Int8sb, c.Int16ub, c.Int64sb, c.Float64b, c.Flag, UUID]
    assert [fixed_code(kind) for kind in kinds] == ["b", "H", "q", "d", "?", "16s"]
    assert fixed_code(UVARINT) is None


def test_packing_is_big_endian_without_padding() -> None:
    assert packer("bq").pack(1, 2) == b"\x01\0\0\0\0\0\0\0\x02"


def test_names_are_fresh_and_one_object_has_one_name() -> None:
    source, thing = Source(), object()
    assert source.fresh("v") != source.fresh("v")
    assert source.bind("D", thing) == source.bind("D", thing)
    assert source.names[source.bind("D", thing)] is thing


def test_defaults_are_written_out_where_they_can_be() -> None:
    source = Source()
    assert [source.literal(item) for item in (None, -1, "x", b"", (), True)] == [
        "None",
        "-1",
        "'x'",
        "b''",
        "()",
        "True",
    ]
    assert source.names[source.literal((1,))] == (1,)


def test_lines_become_functions_and_can_be_inserted_later() -> None:
    source = Source()
    source.line(0, "def double(x):")
    mark = source.mark()
    source.line(1, "return y + y")
    source.insert(mark, 1, "y = x")
    assert source.functions("<test>")["double"](4) == 8
    assert str(source).splitlines()[1] == "    y = x"
