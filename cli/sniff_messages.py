"""What passes through `rota sniff`: requests and responses decoded, filtered, addresses replaced, printed. Pure.

Laws
    A frame that cannot be decoded is described by its header and passed on as it is.
    Of a message only addresses are changed, and in ApiVersions the newest versions of the APIs that carry addresses:
    in a version that is not known here they could not be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields, is_dataclass, replace
from typing import Any, Final

from rota.cli.internal_records import plain
from rota.protocol.compiler import codec
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.header import RequestHeader, read_request_header, read_response_header, response_header
from rota.protocol.messages.api_versions import ApiVersionsResponse
from rota.protocol.registry import APIS
from rota.protocol.wire import DecodeError

API_VERSIONS: Final = 18
PRODUCE: Final = 0
WITH_ADDRESSES: Final = frozenset({0, 1, 3, 10, 60})  # Produce, Fetch (KIP-951), Metadata, FindCoordinator, …
TEXT_SHOWN_MAX: Final = 240
_GROUP_FIELDS: Final = ("group_id", "group", "key")
Replace = Callable[[str, int], tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Message:
    """One request or response. `body` is None when it cannot be decoded, and `problem` says why."""

    is_request: bool
    header: RequestHeader
    size_bytes: int
    body: Any = None
    problem: str = ""
    duration_ms: float | None = None
    groups: frozenset[str] = field(default=frozenset())

    @property
    def api(self) -> str:
        api = APIS.get(self.header.api_key)
        return f"api {self.header.api_key}" if api is None else api.name

    @property
    def error_names(self) -> tuple[str, ...]:
        """The error codes of a response, by name, without NONE."""
        return tuple(dict.fromkeys(ErrorCode.of(code).name for code in _error_codes(self.body) if code))


def read_request(frame: bytes) -> Message:
    """Decode a request. Raises DecodeError when it has no header of a request."""
    header, begin = read_request_header(frame)
    body, problem = _decoded(header, frame, begin, "request")
    return Message(True, header, len(frame), body, problem, None, frozenset(_groups(body)))


def read_response(request: Message, frame: bytes, duration_ms: float) -> Message:
    """Decode the response to a request. Raises DecodeError when its correlation id is not that of the request."""
    header = request.header
    correlation, begin = read_response_header(frame, header.api_key, header.api_version)
    if correlation != header.correlation_id:
        raise DecodeError(f"a response to request {correlation}, where {header.correlation_id} is the next")
    body, problem = _decoded(header, frame, begin, "response")
    return Message(False, header, len(frame), body, problem, duration_ms, request.groups)


def has_response(request: Message) -> bool:
    """Whether the broker responds: not to a Produce with acks=0."""
    return not (request.header.api_key == PRODUCE and request.body is not None and request.body.acks == 0)


def _decoded(header: RequestHeader, frame: bytes, begin: int, kind: str) -> tuple[Any, str]:
    api, version = APIS.get(header.api_key), _version(header, kind)
    if api is None or version not in api.versions:
        return None, f"version {header.api_version} of API {header.api_key} is not known"
    try:
        return codec(getattr(api, kind), version).decode(frame, begin)[0], ""
    except DecodeError as failure:
        return None, str(failure)


def _version(header: RequestHeader, kind: str) -> int:
    """Return the version of a message: an ApiVersions request of a newer version than the broker's gets version 0."""
    is_newer = header.api_key == API_VERSIONS and header.api_version > APIS[API_VERSIONS].versions[-1]
    return 0 if is_newer and kind == "response" else header.api_version


# ---- addresses


def rewritten(response: Message, frame: bytes, address: Replace) -> bytes:
    """Return the frame of a response with its brokers' addresses replaced; the same frame where there are none."""
    header = response.header
    if response.body is None:
        return frame
    if header.api_key == API_VERSIONS:
        body = limited(response.body)
    elif header.api_key in WITH_ADDRESSES:
        body = with_addresses(response.body, address)
    else:
        return frame
    if body is response.body:
        return frame
    head = response_header(header.correlation_id, header.api_key, header.api_version)
    return head + bytes(codec(type(body), _version(header, "response")).encode(body))


def addresses(body: Any) -> set[tuple[str, int]]:
    """Return the addresses of brokers in a message."""
    found: set[tuple[str, int]] = set()

    def collect(host: str, port: int) -> tuple[str, int]:
        found.add((host, port))
        return host, port

    with_addresses(body, collect)
    return found


def with_addresses(value: Any, address: Replace) -> Any:
    """Return the message with each host and port replaced; the same object when it has none."""
    if isinstance(value, tuple):
        items = tuple(with_addresses(item, address) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if getattr(value, "host", "") and getattr(value, "port", -1) > 0:
        host, port = address(value.host, value.port)  # type: ignore[attr-defined]
        return replace(value, host=host, port=port)
    changed = {}
    for each in fields(value):
        old = getattr(value, each.name)
        if isinstance(old, tuple) and old and is_dataclass(old[0]):
            new = with_addresses(old, address)
            if new is not old:
                changed[each.name] = new
    return replace(value, **changed) if changed else value


def limited(body: ApiVersionsResponse) -> ApiVersionsResponse:
    """Return ApiVersions with the APIs that carry addresses limited to the versions that are known here."""
    keys = tuple(
        replace(each, max_version=min(each.max_version, APIS[each.api_key].versions[-1]))
        if each.api_key in WITH_ADDRESSES
        else each
        for each in body.api_keys
    )
    return body if keys == body.api_keys else replace(body, api_keys=keys)


# ---- filters


@dataclass(frozen=True, slots=True)
class Filter:
    """Which exchanges are printed: those of all given kinds. A response is printed when its request is."""

    apis: frozenset[str] = frozenset()  # names in lower case
    clients: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    only_errors: bool = False

    def matches(self, message: Message) -> bool:
        return (
            (not self.apis or message.api.lower() in self.apis)
            and (not self.clients or (message.header.client_id or "") in self.clients)
            and (not self.groups or bool(self.groups & message.groups))
        )


def _named_values(value: Any) -> Iterable[tuple[str, Any]]:
    """Yield the name and value of each field of a message and of the structures in it."""
    if isinstance(value, tuple):
        for item in value:
            yield from _named_values(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            inner = getattr(value, each.name)
            yield each.name, inner
            if isinstance(inner, tuple):
                yield from _named_values(inner)


def _groups(request: Any) -> Iterable[str]:
    """Yield the groups that a request names."""
    for name, value in _named_values(request):
        if name in _GROUP_FIELDS and isinstance(value, str) and value:
            yield value
        elif name in ("groups", "groups_names", "coordinator_keys") and value and isinstance(value[0], str):
            yield from value


def _error_codes(message: Any) -> Iterable[int]:
    return (value for name, value in _named_values(message) if name == "error_code")


# ---- printing


def document(message: Message, connection: int, time: str, *, with_body: bool) -> dict[str, Any]:
    """Return a message as JSON."""
    header = message.header
    found: dict[str, Any] = {
        "time": time,
        "connection": connection,
        "kind": "request" if message.is_request else "response",
        "api": message.api,
        "key": header.api_key,
        "version": header.api_version,
        "correlation_id": header.correlation_id,
        "client_id": header.client_id,
        "bytes": message.size_bytes,
        "groups": sorted(message.groups),
    }
    if not message.is_request:
        found |= {"duration_ms": message.duration_ms, "errors": list(message.error_names)}
    if message.problem:
        found["undecoded"] = message.problem
    if with_body:
        found["body"] = plain(message.body)
    return found


def line(found: Mapping[str, Any], *, full: bool) -> str:
    """Return a document of a message as a line of text; without `full` the body is cut after TEXT_SHOWN_MAX."""
    arrow = ">" if found["kind"] == "request" else "<"
    parts = [found["time"][11:23], f"#{found['connection']}", arrow, f"{found['api']} v{found['version']}"]
    parts.append(f"({found['correlation_id']})")
    if found["kind"] == "request":
        parts.append(found["client_id"] or "-")
    else:
        parts.append(f"{found['duration_ms']:.1f} ms")
    parts.append(f"{found['bytes']} B")
    parts += [f"errors: {', '.join(found['errors'])}"] if found.get("errors") else []
    parts += [f"undecoded: {found['undecoded']}"] if "undecoded" in found else []
    body = _short(found.get("body"))
    parts.append(body if full or len(body) <= TEXT_SHOWN_MAX else f"{body[:TEXT_SHOWN_MAX]}…")
    return " ".join(parts).rstrip()


def _short(value: Any, name: str = "") -> str:
    if isinstance(value, dict):
        shown = (f"{each}={_short(inner, each)}" for each, inner in value.items() if inner not in (None, "", []))
        return f"{{{' '.join(shown)}}}" if name else " ".join(shown)
    if isinstance(value, list):
        return f"[{' '.join(_short(item, name) for item in value)}]"
    if name == "error_code":
        return ErrorCode.of(value).name
    return "" if value is None else str(value)
