"""Map the head of a request to the function that serves it: a flat table, filled when a version is first used.

Request header v1 is key, version, correlation id, client id; v2 (flexible versions) adds tagged fields. Response header
v0 is the correlation id; v1 adds tagged fields. An ApiVersions response always has header v0, because the client does
not know the broker's versions yet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rota.coordinator.network.call import Call, Route
from rota.coordinator.observe.counters import ApiCounters
from rota.protocol import varint
from rota.protocol.compiler import codec
from rota.protocol.varint import read_uvarint

FETCH, API_VERSIONS = 1, 18
HANDLERS_MAX = 1_024  # more than the supported versions; an unsupported version of some APIs has a handler, too

read_head = struct.Struct(">Iih").unpack_from  # (key << 16 | version, correlation id, bytes of the client id)


class ApiHandler(NamedTuple):
    """One version of one API: its codecs, its function and its counters."""

    decode: Callable[..., tuple[Any, int]]
    encode: Callable[[Any], bytes]
    serve: Callable[[Any, Call, Any], Any]
    flexible: bool  # the request header has tagged fields
    tagged: bool  # the response header has tagged fields
    bulky: bool  # its responses carry record batches, which are not copied
    parts: Callable[[Any], list[bytes | memoryview]]
    name: str
    version: int
    counters: ApiCounters  # shared by all versions of the API
    has_error: bool  # its responses have a top-level error code


class UnknownApi(Exception):
    """A request for an API or a version that is not supported; the connection is closed."""


class Dispatcher:
    """The routes of one broker. `handler_of(api)` is the version `api & 0xffff` of key `api >> 16`."""

    def __init__(self, routes: Mapping[int, Route]) -> None:
        self._routes = routes
        self._handlers: dict[int, ApiHandler] = {}
        self.counters: dict[str, ApiCounters] = {}  # by the API's name, created at its first request

    def handler_of(self, api: int) -> ApiHandler:
        """Return the handler of an API version. Raises UnknownApi."""
        found = self._handlers.get(api)
        if found is None:
            if len(self._handlers) >= HANDLERS_MAX:
                self._handlers.clear()
            found = self._handlers[api] = self._make(api >> 16, api & 0xFFFF)
        return found

    def _make(self, key: int, version: int) -> ApiHandler:
        route = self._routes.get(key)
        if route is None:
            raise UnknownApi(f"API key {key} is unknown")
        if version not in route.versions:
            if route.unsupported_version is None:
                raise UnknownApi(f"{route.name} version {version} is unknown")
            return _unsupported_version_handler(route, route.unsupported_version, self._counters(route.name))
        request, response = codec(route.request, version), codec(route.response, version)
        decode, encode = (request.decode, response.encode) if route.codecs is None else route.codecs(version)
        flexible = route.flexible is not None and version >= route.flexible
        return ApiHandler(
            decode=decode,
            encode=encode,
            serve=route.serve,
            flexible=flexible,
            tagged=flexible and key != API_VERSIONS,
            bulky=key == FETCH,
            parts=response.parts,
            name=route.name,
            version=version,
            counters=self._counters(route.name),
            has_error=hasattr(route.response, "error_code"),
        )

    def _counters(self, name: str) -> ApiCounters:
        return self.counters.setdefault(name, ApiCounters())


def _unsupported_version_handler(
    route: Route, unsupported_version: Callable[[Any, Call], Any], counters: ApiCounters
) -> ApiHandler:
    """Return the handler of an unsupported version, which does not decode the request."""
    response = codec(route.response, 0)
    return ApiHandler(
        decode=lambda frame, at=0: (None, len(frame)),
        encode=response.encode,
        serve=lambda node, call, request: unsupported_version(node, call),
        flexible=False,
        tagged=False,
        bulky=False,
        parts=response.parts,
        name=route.name,
        version=0,
        counters=counters,
        has_error=False,
    )


def skip_tags(frame: bytes, at: int) -> int:
    """Return the position after the tagged fields of a request header. Raises DecodeError, IndexError."""
    count, at = read_uvarint(frame, at)
    return varint.skip_tags(frame, at, count)
