"""Request and response headers. Requests: v1, flexible v2; responses: v0, flexible v1.

Laws
    The API key and version of a request determine its header version, also for versions that are not supported.
    An ApiVersions response has header v0 in every version: the client does not know the broker's versions yet
    (KIP-511).
    A null client id is read as an empty one.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from rota.protocol.compiler import codec
from rota.protocol.constructs import GARBLED, DecodeError
from rota.protocol.dataclass import dataclass
from rota.protocol.registry import APIS
from rota.protocol.varint import read_uvarint, skip_tags
from rota.protocol.wire import NEVER

API_VERSIONS_KEY: Final = 18

_REQUEST: Final = struct.Struct(">hhih")
_RESPONSE: Final = struct.Struct(">i")
_FLEXIBLE_RESPONSE: Final = struct.Struct(">iB")
_FLEXIBLE_FROM: Final = {key: api.flexible for key, api in APIS.items()}
_FLEXIBLE_RESPONSE_FROM: Final = {**_FLEXIBLE_FROM, API_VERSIONS_KEY: NEVER}
_new: Final = object.__new__


@dataclass(slots=True)
class RequestHeader:
    """The header of a request. `api_key` and `api_version` are the peer's and may be unsupported."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str


def read_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """(header, position of the body). The frame is without its size field. Raises DecodeError.

    An API that the registry does not have is read as not flexible; the caller can only close the connection.
    """
    try:
        key, version, correlation, size = _REQUEST.unpack_from(frame)
        end = 10
        client = ""
        if size > 0:
            end += size
            client = frame[10:end].decode("utf-8", GARBLED)
        if version >= _FLEXIBLE_FROM.get(key, NEVER):
            count, end = read_uvarint(frame, end)
            if count:
                end = skip_tags(frame, end, count)
    except (struct.error, IndexError) as cause:
        raise DecodeError("request header longer than its frame") from cause
    if end > len(frame):
        raise DecodeError("request header longer than its frame")
    header = _new(RequestHeader)
    header.api_key, header.api_version, header.correlation_id, header.client_id = key, version, correlation, client
    return header, end


def response_header(correlation_id: int, api_key: int, api_version: int) -> bytes:
    """The header of a response to this API version."""
    if api_version >= _FLEXIBLE_RESPONSE_FROM.get(api_key, NEVER):
        return _FLEXIBLE_RESPONSE.pack(correlation_id, 0)
    return _RESPONSE.pack(correlation_id)


def request_header(api_key: int, api_version: int, correlation_id: int, client_id: str) -> bytes:
    """The header of a request of this API version."""
    raw = client_id.encode()
    tags = b"\0" if api_version >= _FLEXIBLE_FROM.get(api_key, NEVER) else b""
    return _REQUEST.pack(api_key, api_version, correlation_id, len(raw)) + raw + tags


def read_response_header(frame: bytes, api_key: int, api_version: int) -> tuple[int, int]:
    """(correlation id, position of the body) of a response to this API version. Raises DecodeError."""
    try:
        (correlation,) = _RESPONSE.unpack_from(frame)
        end = _RESPONSE.size
        if api_version >= _FLEXIBLE_RESPONSE_FROM.get(api_key, NEVER):
            count, end = read_uvarint(frame, end)
            end = skip_tags(frame, end, count)
    except (struct.error, IndexError) as cause:
        raise DecodeError("response header longer than its frame") from cause
    return correlation, end


def read_request(frame: bytes) -> tuple[RequestHeader, Any]:
    """(header, message) of a request frame, for tests and tools. Raises DecodeError, also for unsupported APIs."""
    header, begin = read_request_header(frame)
    api = APIS.get(header.api_key)
    if api is None or header.api_version not in api.versions:
        raise DecodeError(f"no version {header.api_version} of API {header.api_key}")
    return header, codec(api.request, header.api_version).decode(frame, begin)[0]
