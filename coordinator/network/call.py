"""The interface between the network and the APIs: the context of a request, the route of an API, and CloseConnection.

An API is a function `serve(node, call, request)`. A response that it returns is sent at once; a DelayedReply is sent
when it is answered; after None nothing is sent (Produce with acks=0); raising CloseConnection closes the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from rota.coordinator.observe.counters import ApiCounters
from rota.coordinator.security.principal import ANONYMOUS, Principal
from rota.protocol.dataclass import dataclass

if TYPE_CHECKING:
    from rota.coordinator.security.sasl.session import SaslSession


class CloseConnection(Exception):
    """Raised to close the connection when a request without a response failed (Produce with acks=0)."""


@dataclass(slots=True)
class ClientSoftware:
    """The name and version of the client's library, from its ApiVersions request (KIP-511)."""

    name: str = "unknown"
    version: str = "unknown"


@dataclass(slots=True)
class Call:
    """One request: its client, its version, and the listener address that it used."""

    version: int
    client_id: str
    client_host: str  # the peer's address, as Kafka writes it into group metadata: "/127.0.0.1"
    # the address of this broker for this client: the listener's, else the one that the client used
    reached_host: str
    reached_port: int
    connection_id: int = 0
    listener: str = ""  # the name of the listener that it used
    client_port: int = 0  # the peer's
    software: ClientSoftware = field(default_factory=ClientSoftware)  # of the connection; ApiVersions sets it
    counters: ApiCounters = field(default_factory=ApiCounters)  # where an API counts the errors inside its responses
    principal: Principal = ANONYMOUS  # that the connection has authenticated as
    sasl: SaslSession | None = None  # the authentication of the connection; None on a listener without SASL
    sends_files: bool = False  # parts of files may stand for bytes in the response
    mute: Callable[[int], None] | None = None  # serve no request of the connection for so many ms; None: no connection


Codecs = tuple[Callable[..., tuple[Any, int]], Callable[[Any], bytes]]  # decode a request, encode a response


@dataclass(frozen=True, slots=True)
class Route:
    """One API. `serve(node, call, request)` returns a response, a DelayedReply, or None for no response.

    `unsupported_version(node, call)` returns the response, in version 0, to a request of an unsupported version. If it
    is None, such a request closes the connection, as in Kafka.
    """

    key: int
    name: str
    versions: range
    flexible: int | None
    request: type[Any]
    response: type[Any]
    serve: Callable[[Any, Call, Any], Any]
    unsupported_version: Callable[[Any, Call], Any] | None = None
    codecs: Callable[[int], Codecs] | None = None  # of a version, where the API has faster ones than those generated
