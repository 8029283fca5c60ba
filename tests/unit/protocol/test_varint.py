from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.protocol.constructs import TAGS_MAX, TEXT_BYTES_MAX, UVARINT, DecodeError
from rota.protocol.varint import SMALL, read_tag, read_uvarint, skip_tags, tag_section, text_size, uvarint


@settings(deadline=None)
@given(st.integers(0, 2**35 - 1))
def test_a_varint_is_read_back_and_equals_constructs(value: int) -> None:
    raw = uvarint(value)
    assert read_uvarint(b"x" + raw, 1) == (value, 1 + len(raw))
    assert UVARINT.build(value) == raw


def test_the_table_of_small_ones_agrees() -> None:
    assert list(SMALL) == [uvarint(value) for value in range(128)]


def test_a_sixth_byte_is_refused_and_the_end_noticed() -> None:
    with pytest.raises(DecodeError):
        read_uvarint(b"\xff\xff\xff\xff\xff\x01", 0)
    with pytest.raises(IndexError):
        read_uvarint(b"\xff\xff", 0)


def test_the_length_of_a_text_is_limited_to_two_bytes() -> None:
    assert text_size(uvarint(TEXT_BYTES_MAX + 1), 0) == (TEXT_BYTES_MAX + 1, 3)
    with pytest.raises(DecodeError):
        text_size(uvarint(TEXT_BYTES_MAX + 2), 0)


def test_tags_are_written_in_the_order_given_and_none_is_left_out() -> None:
    raw = tag_section(((0, b"a"), None, (200, b"bc")))
    assert raw == b"\x02" + b"\x00\x01a" + b"\xc8\x01\x02bc"
    assert read_tag(raw, 1) == (0, 3, 4)
    assert skip_tags(raw, 1, 2) == len(raw)


def test_a_tag_that_leaves_the_frame_is_refused() -> None:
    with pytest.raises(DecodeError):
        read_tag(b"\x00\x05abc", 0)


def test_too_many_tags_are_refused_before_any_is_read() -> None:
    with pytest.raises(DecodeError, match="too many"):
        skip_tags(b"", 0, TAGS_MAX + 1)
