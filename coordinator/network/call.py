"""What network and APIs agree on: a request on its way, the entry of an API, and how an API closes a connection.

An API is a function `serve(node, call, request)`. A plain response leaves at once, a DelayedReply when it is answered,
None leaves nothing (Produce with acks=0), and HangUp, raised, closes the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rota.coordinator.observe.counters import ApiCounters
from rota.coordinator.security.principal import ANONYMOUS, Principal


class HangUp(Exception):
    """Close the connection: a request failed whose client awaits no reply (Produce with acks=0)."""


@dataclass(slots=True)
class ClientSoftware:
    """What a client says in ApiVersions about itself (KIP-511)."""

    name: str = "unknown"
    version: str = "unknown"


@dataclass(slots=True)
class Call:
    """One request: its client, its version, and the listener address that it used."""

    version: int
    client_id: str
    client_host: str  # the peer's address, as Kafka writes it into group metadata: "/127.0.0.1"
    # the address that this client shall use: what its listener advertises or, where none is configured, what it used
    reached_host: str
    reached_port: int
    connection_id: int = 0
    listener: str = ""  # the name of the listener that it used
    client_port: int = 0  # the peer's
    software: ClientSoftware = field(default_factory=ClientSoftware)  # of the connection; ApiVersions sets it
    counters: ApiCounters = field(default_factory=ApiCounters)  # where an API counts the errors inside its responses
    principal: Principal = ANONYMOUS  # whom the connection has authenticated as


@dataclass(frozen=True, slots=True)
class Route:
    """One API. `serve(node, call, request)` gives a response, a DelayedReply, or None for no reply.

    `unsupported_version(node, call)` gives the response, in version 0, to a version that is not supported; where it is
    None the connection is closed, as Kafka does.
    """

    key: int
    name: str
    versions: range
    flexible: int | None
    request: type[Any]
    response: type[Any]
    serve: Callable[[Any, Call, Any], Any]
    unsupported_version: Callable[[Any, Call], Any] | None = None
