"""What a shape says of a version. That codecs and construct types agree on it is in tests/property/test_wire.py."""

from __future__ import annotations

import pytest

from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.shapes import GARBLED, GARBLED_BYTES_MAX, INT16, INT32, UUID, UUID_BYTES, DecodeError, Text
from rota.protocol.wire import shape


def test_a_version_has_its_fields_and_tags_only_if_it_is_flexible() -> None:
    first, last = shape(HeartbeatRequest, 0), shape(HeartbeatRequest, 4)
    assert [part.name for part in first.parts] == ["group_id", "generation_id", "member_id"]
    assert [part.name for part in last.parts] == ["group_id", "generation_id", "member_id", "group_instance_id"]
    assert (first.tags, last.tags, last.made) == (None, (), HeartbeatRequest)


def test_a_text_says_how_its_length_is_written() -> None:
    texts = [shape(HeartbeatRequest, version).parts[0].node for version in (0, 4)]
    assert [(text.flexible, text.nullable, text.prefix) for text in texts if isinstance(text, Text)] == [
        (False, False, INT16),
        (True, False, INT16),
    ]


def test_a_value_of_fixed_size_knows_it() -> None:
    assert shape(HeartbeatRequest, 4).parts[1].node is INT32
    assert (INT32.size, UUID.size) == (4, UUID_BYTES)


def test_bytes_that_are_not_utf8_are_replaced_or_refused_if_the_text_could_get_too_long() -> None:
    assert b"a\xffb".decode("utf-8", GARBLED) == "a\N{REPLACEMENT CHARACTER}b"
    with pytest.raises(DecodeError):
        (b"\xff" * (GARBLED_BYTES_MAX + 1)).decode("utf-8", GARBLED)
