"""The table of supported APIs: versions, headers, unknown keys."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.coordinator.network.dispatch import Dispatcher, Route, UnknownApi, skip_tags
from rota.protocol.compiler import codec
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.messages.fetch import FetchRequest, FetchResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.wire import DecodeError


def _nothing(node: Any, call: Any, request: Any) -> None:
    return None


def _unsupported_version(node: Any, call: Any) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=35, api_keys=[])


DISPATCHER = Dispatcher(
    {
        1: Route(1, "Fetch", range(4, 18), 12, FetchRequest, FetchResponse, _nothing),
        12: Route(12, "Heartbeat", range(5), 4, HeartbeatRequest, HeartbeatResponse, _nothing),
        18: Route(
            18, "ApiVersions", range(5), 3, ApiVersionsRequest, ApiVersionsResponse, _nothing, _unsupported_version
        ),
    }
)


@pytest.mark.parametrize(
    ("key", "version", "flexible", "tagged"),
    [(12, 0, False, False), (12, 3, False, False), (12, 4, True, True), (18, 2, False, False), (18, 4, True, False)],
)
def test_headers_follow_the_version_and_api_versions_keeps_the_old_answer(
    key: int, version: int, flexible: bool, tagged: bool
) -> None:
    known = DISPATCHER.handler_of(key << 16 | version)
    assert (known.flexible, known.tagged, known.version, known.bulky) == (flexible, tagged, version, False)


def test_a_version_is_learnt_once() -> None:
    assert DISPATCHER.handler_of(12 << 16 | 1) is DISPATCHER.handler_of(12 << 16 | 1)
    assert DISPATCHER.handler_of(1 << 16 | 11).bulky


@pytest.mark.parametrize("api", [12 << 16 | 5, 12 << 16 | 0xFFFF, 13 << 16, 0xFFFF_FFFF, 1 << 16 | 3])
def test_an_api_without_a_route_raises_unknown_api(api: int) -> None:
    with pytest.raises(UnknownApi):
        DISPATCHER.handler_of(api)


def test_an_unsupported_version_is_answered_in_version_0_without_decoding_the_request() -> None:
    known = DISPATCHER.handler_of(18 << 16 | 77)
    request, end = known.decode(b"\xff\xff\xff", 0)
    response = known.serve(None, None, request)  # type: ignore[arg-type]
    assert end == 3
    assert codec(ApiVersionsResponse, 0).decode(known.encode(response))[0].error_code == 35


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**31), st.binary(max_size=20)), max_size=5), st.binary(max_size=10))
def test_tags_are_skipped_whole(tags: list[tuple[int, bytes]], rest: bytes) -> None:
    frame = _varint(len(tags)) + b"".join(_varint(tag) + _varint(len(body)) + body for tag, body in tags)
    assert skip_tags(frame + rest, 0) == len(frame)


@settings(deadline=None)
@given(st.binary(max_size=30))
def test_random_tags_are_skipped_or_refused(frame: bytes) -> None:
    with contextlib.suppress(DecodeError, IndexError):
        assert skip_tags(frame, 0) <= len(frame)


def _varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
