from __future__ import annotations

import pytest

from rota.protocol.compiler import codec, field_writer, source
from rota.protocol.constructs import ELEMENTS_MAX
from rota.protocol.messages.api_versions import ApiVersionsRequest
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.varint import uvarint
from rota.protocol.wire import DecodeError

HEARTBEAT = b"\x03g1\x00\x00\x00\x07\x03m1\x00\x00"


def test_a_heartbeat_has_the_bytes_of_kafka() -> None:
    message = HeartbeatRequest(group_id="g1", generation_id=7, member_id="m1")
    assert codec(HeartbeatRequest, 4).encode(message) == HEARTBEAT
    assert codec(HeartbeatRequest, 4).decode(HEARTBEAT) == (message, len(HEARTBEAT))
    assert codec(HeartbeatRequest, 0).encode(message) == b"\0\x02g1\0\0\0\x07\0\x02m1"
    assert codec(HeartbeatResponse, 4).encode(HeartbeatResponse(error_code=27)) == b"\0\0\0\0\0\x1b\0"


def test_a_codec_is_made_once() -> None:
    assert codec(HeartbeatRequest, 4) is codec(HeartbeatRequest, 4)
    assert codec(HeartbeatRequest, 4) is not codec(HeartbeatRequest, 3)


def test_a_codec_for_an_unsupported_version_is_refused() -> None:
    with pytest.raises(ValueError, match="no version -1"):
        codec(HeartbeatRequest, -1)


def test_a_message_without_fields_is_empty() -> None:
    assert codec(ApiVersionsRequest, 0).encode(ApiVersionsRequest()) == b""
    assert codec(ApiVersionsRequest, 0).decode(b"") == (ApiVersionsRequest(), 0)


def test_any_buffer_is_read_from_any_place() -> None:
    for buffer in (b"??" + HEARTBEAT, bytearray(b"??" + HEARTBEAT), memoryview(b"??" + HEARTBEAT)):
        message, end = codec(HeartbeatRequest, 4).decode(buffer, 2)
        assert (message.member_id, end) == ("m1", 2 + len(HEARTBEAT))


def test_the_arrays_of_a_message_have_a_limit_together() -> None:
    def groups(count: int) -> bytes:
        return uvarint(count + 1) + b"\x01" * count + b"\0\0"

    message, _ = codec(DescribeGroupsRequest, 5).decode(groups(ELEMENTS_MAX))
    assert len(message.groups) == ELEMENTS_MAX
    with pytest.raises(DecodeError, match="limits"):
        codec(DescribeGroupsRequest, 5).decode(groups(ELEMENTS_MAX + 1))


def test_the_generated_source_is_readable() -> None:
    text = source(HeartbeatRequest, 4)
    assert "def decode" in text
    assert "m.group_instance_id" in text


def test_a_message_is_written_from_its_fields_too() -> None:
    whole = codec(HeartbeatRequest, 4).encode(HeartbeatRequest(group_id="g", generation_id=3, member_id="m"))
    assert field_writer(HeartbeatRequest, 4, b"lead")("g", 3, "m", None) == b"lead" + whole
