"""A broker whose answers a test writes: real sockets, real frames, any behaviour.

    async with Scripted() as broker:
        broker.on(HeartbeatRequest, lambda request: HeartbeatResponse(error_code=27))

An answer is a response dataclass (sent in the version that was asked), raw bytes (sent as they are), None (never
answered), CLOSE (the connection ends), or an awaitable of one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

from rota.protocol.compiler import codec
from rota.protocol.header import RequestHeader, read_request, response_header
from rota.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from rota.protocol.registry import APIS

CLOSE = object()
EVERYTHING = tuple(
    ApiVersion(api_key=key, min_version=api.versions[0], max_version=api.versions[-1]) for key, api in APIS.items()
)


class Scripted:
    """`requests` are those so far, `connections` counts those that came; `port` is where it listens."""

    def __init__(
        self, node: int = 0, *, versions: tuple[ApiVersion, ...] = EVERYTHING, tls: ssl.SSLContext | None = None
    ) -> None:
        self.node = node
        self._tls = tls
        self.requests: list[Any] = []
        self.headers: list[RequestHeader] = []
        self.connections = 0
        self.peers: list[Scripted] = [self]
        self.leaders: dict[str, Any] = {}
        self._answers: dict[type, Callable[[Any], Any]] = {
            ApiVersionsRequest: lambda _: ApiVersionsResponse(api_keys=versions),
            MetadataRequest: lambda _: self.metadata(),
            SaslHandshakeRequest: lambda _: SaslHandshakeResponse(error_code=34),  # a listener without SASL
        }
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def on(self, request: type, answer: Callable[[Any], Any]) -> None:
        self._answers[request] = answer

    def metadata(self, *topics: Any) -> MetadataResponse:
        brokers = tuple(
            MetadataResponseBroker(node_id=item.node, host="127.0.0.1", port=item.port) for item in self.peers
        )
        return MetadataResponse(brokers=brokers, cluster_id="scripted", controller_id=self.node, topics=tuple(topics))

    def counted(self) -> Counter[type]:
        return Counter(type(request) for request in self.requests)

    async def listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """No listener and no connection any more."""
        if self._server is not None:
            self._server.close()
        self.drop()
        while self._writers:
            await asyncio.sleep(0)

    def drop(self) -> None:
        """Every connection ends."""
        for writer in self._writers:
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                header, request = read_request(await reader.readexactly(size))
                self.requests.append(request)
                self.headers.append(header)
                answer = self._answers[type(request)](request)
                if inspect.isawaitable(answer):
                    answer = await answer
                if answer is CLOSE:
                    break
                if answer is not None:
                    writer.write(answer if isinstance(answer, bytes) else framed(header, answer))
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()


def framed(header: RequestHeader, answer: Any, *, correlation: int | None = None, version: int | None = None) -> bytes:
    """An answer with its length and header."""
    requests = header.api_version if version is None else version
    head = response_header(header.correlation_id if correlation is None else correlation, header.api_key, requests)
    body = head + codec(type(answer), requests).encode(answer)
    return len(body).to_bytes(4, "big") + body


async def eventually(look: Callable[[], Any], seconds: float = 10) -> Any:
    """What `look` gives as soon as it gives something."""
    async with asyncio.timeout(seconds):
        while not (found := look()):
            await asyncio.sleep(0.002)
    return found
