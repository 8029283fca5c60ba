from __future__ import annotations

import pytest

from rota.protocol.compiler import codec
from rota.protocol.header import (
    RequestHeader,
    read_request,
    read_request_header,
    read_response_header,
    request_header,
    response_header,
)
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.registry import APIS
from rota.protocol.wire import DecodeError

API_VERSIONS, HEARTBEAT, OFFSET_DELETE = 18, 12, 47


def test_the_two_request_headers() -> None:
    assert request_header(HEARTBEAT, 3, 7, "me") == b"\0\x0c\0\x03\0\0\0\x07\0\x02me"
    assert request_header(HEARTBEAT, 4, 7, "me") == b"\0\x0c\0\x04\0\0\0\x07\0\x02me\0"


def test_a_header_is_read_back_for_every_api_and_version() -> None:
    for api in APIS.values():
        for version in api.versions:
            raw = request_header(api.key, version, -5, "grüße")
            assert read_request_header(raw + b"body") == (RequestHeader(api.key, version, -5, "grüße"), len(raw))
            raw = response_header(-5, api.key, version)
            assert read_response_header(raw + b"body", api.key, version) == (-5, len(raw))


def test_a_null_client_id_is_an_empty_one() -> None:
    assert read_request_header(b"\0\x0c\0\x00\0\0\0\x07\xff\xff")[0].client_id == ""


def test_tags_in_a_header_are_skipped() -> None:
    raw = b"\0\x0c\0\x04\0\0\0\x07\0\x00" + b"\x01\x05\x02ab"
    assert read_request_header(raw)[1] == len(raw)


def test_an_api_versions_response_never_has_tags_in_its_header() -> None:
    assert response_header(7, API_VERSIONS, 4) == b"\0\0\0\x07"
    assert response_header(7, HEARTBEAT, 4) == b"\0\0\0\x07\0"
    assert response_header(7, HEARTBEAT, 3) == b"\0\0\0\x07"
    assert response_header(7, OFFSET_DELETE, 0) == b"\0\0\0\x07"


def test_a_version_of_the_future_still_has_a_header() -> None:
    header, end = read_request_header(b"\0\x12\0\x63\0\0\0\x07\0\x01x\0" + b"what is this")
    assert (header.api_version, end) == (99, 12)


def test_the_header_of_an_unknown_api_has_its_key() -> None:
    header, _ = read_request_header(b"\x7f\xff\0\x00\0\0\0\x07\xff\xff")
    assert header.api_key == 0x7FFF


@pytest.mark.parametrize("cut", range(13))
def test_a_header_that_was_cut_is_refused(cut: int) -> None:
    whole = request_header(HEARTBEAT, 4, 7, "me")
    assert len(whole) == 13
    with pytest.raises(DecodeError):
        read_request_header(whole[:cut])


def test_hostile_headers_are_refused() -> None:
    for tail in (b"\x7f\xff", b"\0\0\xff\xff\xff\xff\xff\xff", b"\0\0\xff\xff\xff\xff\x0f", b"\0\0\x01\x00\x7f"):
        with pytest.raises(DecodeError):
            read_request_header(b"\0\x0c\0\x04\0\0\0\x07" + tail)
    with pytest.raises(DecodeError):
        read_response_header(b"\0\0\0\x01", HEARTBEAT, 4)


def test_a_whole_request_is_read_for_tests_and_tools() -> None:
    message = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    header, found = read_request(request_header(HEARTBEAT, 2, 1, "c") + codec(HeartbeatRequest, 2).encode(message))
    assert (header.correlation_id, found) == (1, message)
    with pytest.raises(DecodeError, match="no version 9 of API 12"):
        read_request(request_header(HEARTBEAT, 9, 1, "c"))
