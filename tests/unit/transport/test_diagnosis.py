import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.unit.certificates import Certificates
from tests.unit.client.network.scripted import Scripted

from rota.transport.diagnosis import is_plaintext_server, is_tls_server
from rota.transport.errors import TlsFailed
from rota.transport.handshake import connect
from rota.transport.security import Security
from rota.transport.tls import TlsSettings, client_context

FRAME_BYTES_MAX = 100 << 20  # socket.request.max.bytes


@contextlib.asynccontextmanager
async def kafka_without_tls() -> AsyncIterator[int]:
    """A listener that hangs up on a frame that is too long, as a ClientHello looks to it. Yields its port."""
    async with Scripted() as broker:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            size = await reader.readexactly(4)
            if int.from_bytes(size, "big") <= FRAME_BYTES_MAX:
                upstream, up = await asyncio.open_connection("127.0.0.1", broker.port)
                up.write(size + await reader.readexactly(int.from_bytes(size, "big")))
                writer.write(await upstream.read(1 << 16))
                up.close()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1")
        async with server:
            yield server.sockets[0].getsockname()[1]


async def test_a_broker_answers_in_plain_text() -> None:
    async with kafka_without_tls() as port:
        assert await is_plaintext_server("127.0.0.1", port)


async def test_a_tls_listener_does_not(certificates: Certificates) -> None:
    async with Scripted(tls=certificates.listener()) as broker:
        assert not await is_plaintext_server("127.0.0.1", broker.port)
        port = broker.port
    assert not await is_plaintext_server("127.0.0.1", port), "nothing listens"


async def test_tls_is_known_by_its_handshake(certificates: Certificates) -> None:
    async with Scripted(tls=certificates.listener()) as broker:
        assert await is_tls_server("127.0.0.1", broker.port)
    async with kafka_without_tls() as port:
        assert not await is_tls_server("127.0.0.1", port)


async def test_a_client_without_tls_at_a_listener_that_hangs_up_without_an_alert(certificates: Certificates) -> None:
    """As asyncio's and uvloop's listeners do."""
    async with Scripted(tls=certificates.listener()) as broker:
        with pytest.raises(TlsFailed, match="this port is a TLS listener; set security_protocol"):
            await connect(
                "localhost", broker.port, "1", "me", setup_seconds=10, request_seconds=10, ended=lambda _: None
            )


async def test_a_client_with_tls_at_a_listener_without_it(certificates: Certificates) -> None:
    security = Security(client_context(TlsSettings(truststore_location=str(certificates.ca))))
    async with kafka_without_tls() as port:
        with pytest.raises(TlsFailed, match="its listener answers in plain text; security_protocol PLAINTEXT or"):
            await connect(
                "localhost",
                port,
                "1",
                "me",
                setup_seconds=10,
                request_seconds=10,
                ended=lambda _: None,
                security=security,
            )
