"""The reference by itself: what it refuses. That it equals the compiled code is in tests/property/test_wire.py."""

from __future__ import annotations

import construct as c
import pytest

from rota.protocol.constructs import ELEMENTS_MAX, TAGS_MAX, UVARINT, List, Octets, Tags, Text
from rota.protocol.varint import uvarint


def test_null_is_allowed_only_in_nullable_fields() -> None:
    assert Octets(c.Int32sb, flexible=False, nullable=True).parse(b"\xff\xff\xff\xff") is None
    assert Octets(UVARINT, flexible=True, nullable=True).build(None) == b"\0"
    with pytest.raises(c.CheckError):
        Octets(UVARINT, flexible=True, nullable=False).parse(b"\0")
    with pytest.raises(c.CheckError):
        Text(c.Int16sb, flexible=False, nullable=False).build(None)


def test_a_length_beyond_the_end_is_refused() -> None:
    with pytest.raises(c.StreamError):
        Text(c.Int16sb, flexible=False, nullable=False).parse(b"\0\x05abc")


def test_too_many_elements_and_tags_are_refused_before_they_are_read() -> None:
    counts = List(UVARINT, c.Int8sb, flexible=True, nullable=False)
    with pytest.raises(c.RangeError, match="elements"):
        counts.parse(uvarint(ELEMENTS_MAX + 2))
    with pytest.raises(c.RangeError, match="tagged"):
        Tags().parse(uvarint(TAGS_MAX + 1))


def test_a_varint_has_five_bytes_at_most() -> None:
    assert UVARINT.parse(b"\xff\xff\xff\xff\x7f") == 2**35 - 1
    with pytest.raises(c.IntegerError):
        UVARINT.parse(b"\xff\xff\xff\xff\xff\x01")
