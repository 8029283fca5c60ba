"""A listener with SASL, by bytes: a broker in memory, and a peer that says what it likes."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network.sasl_connection import FRAME_BYTES_MAX
from rota.coordinator.security.sasl.session import UNKNOWN_VERSIONS_MAX
from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

HANDSHAKE, VERSIONS, AUTHENTICATE, LIST_GROUPS = 17, 18, 36, 16
ALICE, WRONG = b"\0alice\0planted", b"\0alice\0wrong"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="planted" user_bob="planted";'


class Peer:
    """A client that sees bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, message: bytes) -> None:
        self.writer.write(struct.pack(">i", len(message)) + message)

    async def frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def send_request(self, key: int, version: int, body: bytes = b"") -> bytes:
        """Send a request without a client id; return the body of its response."""
        self.send(struct.pack(">hhih", key, version, 7, -1) + body)
        frame = await self.frame()
        assert frame[:4] == b"\0\0\0\7"
        return frame[4:]

    async def handshake(self, version: int = 1, mechanism: str = "PLAIN") -> SaslHandshakeResponse:
        body = codec(SaslHandshakeRequest, version).encode(SaslHandshakeRequest(mechanism=mechanism))
        response, _ = codec(SaslHandshakeResponse, version).decode(await self.send_request(HANDSHAKE, version, body), 0)
        assert isinstance(response, SaslHandshakeResponse)
        return response

    async def authenticate(self, token: bytes = ALICE) -> SaslAuthenticateResponse:
        body = codec(SaslAuthenticateRequest, 1).encode(SaslAuthenticateRequest(auth_bytes=token))
        response, _ = codec(SaslAuthenticateResponse, 1).decode(await self.send_request(AUTHENTICATE, 1, body), 0)
        assert isinstance(response, SaslAuthenticateResponse)
        return response

    async def ended(self) -> bool:
        async with asyncio.timeout(20):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True


Connect = Callable[..., Awaitable[Peer]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Start a broker with these properties, and connect to its listener with SASL."""
    brokers: list[Broker] = []
    peers: list[Peer] = []

    async def start(**properties: str) -> Peer:
        config = {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
            "connection.failed.authentication.delay.ms": "20",
            "rota.authentication.timeout.ms": "3600000",  # what closes a connection here is not the time
            **{name if "." in name else name.replace("_", "."): text for name, text in properties.items()},
        }
        brokers.append(broker := Broker(BrokerConfig(config), memory=True))
        peers.append(peer := Peer(*await asyncio.open_connection(*await broker.start())))
        return peer

    yield start
    for peer in peers:
        peer.writer.close()
        with suppress(OSError):
            await peer.writer.wait_closed()
    for broker in brokers:
        assert len(broker.listener.unauthenticated) <= 1
        await broker.stop()


async def test_a_client_logs_in_and_is_served(connect: Connect) -> None:
    peer = await connect()
    assert (await peer.send_request(VERSIONS, 0))[:2] == b"\0\0"
    assert (await peer.handshake()).mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert (await peer.authenticate()).error_code == 0
    assert (await peer.send_request(LIST_GROUPS, 0))[:2] == b"\0\0"
    assert (await peer.handshake()).error_code == 34
    assert (await peer.authenticate()).error_code == 34
    assert (await peer.send_request(LIST_GROUPS, 0))[:2] == b"\0\0"


async def test_bare_tokens_after_handshake_0(connect: Connect) -> None:
    peer = await connect()
    assert (await peer.handshake(version=0)).error_code == 0
    peer.send(ALICE)
    assert await peer.frame() == b""
    assert (await peer.send_request(LIST_GROUPS, 0))[:2] == b"\0\0"


async def test_a_refused_bare_token_is_hung_up_on(connect: Connect) -> None:
    peer = await connect()
    await peer.handshake(version=0)
    peer.send(WRONG)
    assert await peer.ended()


async def test_a_refusal_is_answered_and_then_the_connection_closes(connect: Connect) -> None:
    peer = await connect()
    await peer.handshake()
    response = await peer.authenticate(WRONG)
    assert response.error_code == 58
    assert response.error_message == "Authentication failed: Invalid username or password"
    assert await peer.ended()


async def test_a_mechanism_that_is_not_enabled_is_answered_and_then_the_connection_closes(connect: Connect) -> None:
    peer = await connect()
    response = await peer.handshake(mechanism="SCRAM-SHA-512")
    assert (response.error_code, response.mechanisms) == (33, ("PLAIN", "SCRAM-SHA-256"))
    assert await peer.ended()


@pytest.mark.parametrize("key", [0, 1, 3, 16, 36, 42, 999])
async def test_any_other_request_before_authentication_is_hung_up_on(connect: Connect, key: int) -> None:
    peer = await connect()
    peer.send(struct.pack(">hhih", key, 3, 7, -1))
    assert await peer.ended()


async def test_api_versions_is_answered_once_and_once_more_after_an_unknown_version(connect: Connect) -> None:
    peer = await connect()
    assert (await peer.send_request(VERSIONS, 99))[:2] == b"\0\x23"
    assert (await peer.send_request(VERSIONS, 0))[:2] == b"\0\0"
    peer.send(struct.pack(">hhih", VERSIONS, 0, 7, -1))
    assert await peer.ended()


async def test_api_versions_of_unknown_versions_are_few(connect: Connect) -> None:
    peer = await connect()
    for _ in range(UNKNOWN_VERSIONS_MAX):
        assert (await peer.send_request(VERSIONS, 99))[:2] == b"\0\x23"
    peer.send(struct.pack(">hhih", VERSIONS, 99, 7, -1))
    assert await peer.ended()


@pytest.mark.parametrize("name", ["sasl", "listener.name.sasl_plaintext.sasl"])
async def test_a_large_frame_before_authentication_is_hung_up_on(connect: Connect, name: str) -> None:
    peer = await connect(**{f"{name}.server.max.receive.size": "1000"})
    peer.writer.write(struct.pack(">i", 1001))
    assert await peer.ended()


@pytest.mark.parametrize("has_begun", [False, True])
async def test_only_a_token_of_oauthbearer_may_be_large_before_authentication(
    connect: Connect, *, has_begun: bool
) -> None:
    peer = await connect()
    if has_begun:
        await peer.handshake()
    peer.writer.write(struct.pack(">i", FRAME_BYTES_MAX + 1))
    assert await peer.ended()


async def test_a_token_of_oauthbearer_may_be_large(connect: Connect) -> None:
    listener = "listener.name.sasl_plaintext"
    handler = "x.OAuthBearerUnsecuredValidatorCallbackHandler"
    own = {f"{listener}.oauthbearer.sasl.server.callback.handler.class": handler}
    peer = await connect(**{"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER", **own})
    assert (await peer.handshake(mechanism="OAUTHBEARER")).error_code == 0
    response = await peer.authenticate(b"n,,\1auth=Bearer " + b"x" * 100_000 + b"\1\1")
    assert (response.error_code, response.auth_bytes) == (0, b'{"status":"invalid_token"}')
    peer.writer.write(struct.pack(">i", 512 * 1024 + 1))
    assert await peer.ended()


async def test_a_large_frame_after_authentication_is_served(connect: Connect) -> None:
    peer = await connect(sasl_server_max_receive_size="100")
    await peer.handshake()
    await peer.authenticate()
    client = b"x" * 2000
    peer.send(struct.pack(">hhih", LIST_GROUPS, 0, 7, len(client)) + client)
    assert (await peer.frame())[4:6] == b"\0\0"


async def test_another_principal_at_re_authentication_is_refused(connect: Connect) -> None:
    peer = await connect(connections_max_reauth_ms="60000")
    await peer.handshake()
    assert (await peer.authenticate()).session_lifetime_ms == 60000
    assert (await peer.handshake()).error_code == 0
    response = await peer.authenticate(b"\0bob\0planted")
    assert response.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert await peer.ended()


async def test_a_second_re_authentication_within_a_second_is_refused(connect: Connect) -> None:
    peer = await connect(connections_max_reauth_ms="60000")
    for _ in range(2):
        assert (await peer.handshake()).error_code == 0
        assert (await peer.authenticate()).session_lifetime_ms == 60000
    assert (await peer.handshake()).error_code == ErrorCode.ILLEGAL_SASL_STATE
    peer.send(struct.pack(">hhih", LIST_GROUPS, 0, 7, -1))
    assert (await peer.frame())[4:6] == b"\0\0"


async def test_an_ended_session_is_hung_up_on_at_its_next_request(connect: Connect) -> None:
    peer = await connect(connections_max_reauth_ms="1")
    await peer.handshake()
    await peer.authenticate()
    peer.send(struct.pack(">hhih", LIST_GROUPS, 0, 7, -1))
    peer.send(struct.pack(">hhih", LIST_GROUPS, 0, 7, -1))
    async with asyncio.timeout(20):
        while not peer.reader.at_eof():  # the first requests may come within its millisecond
            peer.send(struct.pack(">hhih", LIST_GROUPS, 0, 7, -1))
            await peer.reader.read(1000)


async def test_a_client_that_does_not_authenticate_in_time_is_closed(connect: Connect) -> None:
    peer = await connect(rota_authentication_timeout_ms="1")
    assert await peer.ended()
