"""Listeners with TLS, on both loops: certificates, principals, peers without TLS, half-open handshakes."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificates
from structlog.testing import capture_logs
from tests.unit.certificates import Certificates, certificates
from tests.unit.coordinator.network.conftest import HEARTBEAT, Peer, Serve, World, request
from tests.unit.silent_tls import SilentTls

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network import tls_server
from rota.coordinator.network.tls_server import _reason
from rota.protocol.compiler import codec
from rota.protocol.messages.heartbeat import HeartbeatRequest

__all__ = ["certificates"]


async def secure(serve: Serve, certificates: Certificates, **properties: str) -> World:
    own = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl_keystore_location": str(certificates.server.keystore),
        "ssl_truststore_location": str(certificates.ca),
    }
    return await serve(**(own | properties))


async def connect(world: World, ca: Path, certificate: Path | None = None) -> Peer:
    context = ssl.create_default_context(cafile=str(ca))
    if certificate is not None:
        context.load_cert_chain(certificate)
    peer = Peer(*await asyncio.open_connection("127.0.0.1", world.port, ssl=context))
    world.peers.append(peer)
    return peer


async def test_requests_are_served_over_tls(serve: Serve, certificates: Certificates) -> None:
    world = await secure(serve, certificates)
    peer = await connect(world, certificates.ca)
    for generation in (1, 2, 3):
        peer.send_request(generation)
    assert [await peer.answers() for _ in range(3)] == [1, 2, 3]
    assert str(world.calls[0].principal) == "User:ANONYMOUS"
    assert not world.calls[0].sends_files, "F18: what is sent from a file is not encrypted"


async def test_n17_what_a_peer_has_sent_before_it_closes_is_served_over_tls(
    serve: Serve, certificates: Certificates
) -> None:
    world = await secure(serve, certificates)
    peer = await connect(world, certificates.ca)
    for generation in range(1_000):
        peer.send_request(generation, "never")
    await peer.close()
    await world.until(lambda: len(world.connections) == 0 and bool(world.requests))
    assert world.requests == list(range(1_000))


async def test_n17_so_is_what_a_peer_has_sent_that_closes_its_socket_alone(
    serve: Serve, certificates: Certificates
) -> None:
    """As Python's SSLSocket does: without TLS's own end. uvloop then drops what it has not handed over."""
    world = await secure(serve, certificates)
    context = ssl.create_default_context(cafile=str(certificates.ca))
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # a ticket of TLS 1.3 that is not read resets the connection
    body = codec(HeartbeatRequest, 4).encode(HeartbeatRequest(group_id="never", generation_id=1, member_id="m" * 200))

    def send() -> None:
        with socket.create_connection(("127.0.0.1", world.port)) as plain:
            peer = context.wrap_socket(plain, server_hostname="127.0.0.1")
            peer.sendall(request(HEARTBEAT, 4, 1, body) * 1_000)
            peer.close()

    await asyncio.to_thread(send)
    await world.until(lambda: len(world.connections) == 0 and bool(world.requests))
    assert len(world.requests) == 1_000


async def test_a_large_reply_comes_whole_over_tls(serve: Serve, certificates: Certificates) -> None:
    world = await secure(serve, certificates)
    peer = await connect(world, certificates.ca)
    peer.send(bytes.fromhex("00000010 0010 0000 00000007 0006 666f6f626172".replace(" ", "")))
    assert len(await peer.frame()) > 1_000_000


async def test_the_certificate_of_a_client_names_its_principal(serve: Serve, certificates: Certificates) -> None:
    world = await secure(serve, certificates, ssl_client_auth="required")
    peer = await connect(world, certificates.ca, certificates.client.keystore)
    peer.send_request(1)
    assert await peer.answers() == 1
    assert str(world.calls[0].principal) == "User:CN=client,O=Rota tests"


async def test_stores_may_be_pkcs12(serve: Serve, certificates: Certificates, tmp_path: Path) -> None:
    """As `openssl pkcs12 -export` and Java's keytool write them."""
    secret, server = "planted-store", certificates.server
    key = load_pem_private_key(server.key.read_bytes(), None)
    chain, authority = (load_pem_x509_certificates(path.read_bytes()) for path in (server.certificate, certificates.ca))
    encryption = BestAvailableEncryption(secret.encode())
    own = pkcs12.serialize_key_and_certificates(b"broker", key, chain[0], chain[1:], encryption)
    (tmp_path / "own.p12").write_bytes(own)
    trusted = [pkcs12.PKCS12Certificate(each, b"authority") for each in authority]
    (tmp_path / "trusted.p12").write_bytes(pkcs12.serialize_java_truststore(trusted, encryption))
    stores = {
        "ssl_keystore_location": str(tmp_path / "own.p12"),
        "ssl_keystore_type": "PKCS12",
        "ssl_keystore_password": secret,
        "ssl_truststore_location": str(tmp_path / "trusted.p12"),
        "ssl_truststore_type": "PKCS12",
        "ssl_truststore_password": secret,
    }
    world = await serve(listeners="SSL://127.0.0.1:0", ssl_client_auth="required", **stores)
    peer = await connect(world, certificates.ca, certificates.client.keystore)
    peer.send_request(1)
    assert await peer.answers() == 1
    assert str(world.calls[0].principal) == "User:CN=client,O=Rota tests"


async def test_a_client_that_no_rule_names_is_closed(serve: Serve, certificates: Certificates) -> None:
    rules = "RULE:O=x/y/"
    world = await secure(serve, certificates, ssl_client_auth="required", ssl_principal_mapping_rules=rules)
    with capture_logs() as logs:
        peer = await connect(world, certificates.ca, certificates.client.keystore)
        peer.send_request(1)
        assert await peer.ended()
    assert not world.calls
    assert any("no rule of ssl.principal.mapping.rules matches" in line.get("reason", "") for line in logs)


@pytest.mark.parametrize("client", ["none", "untrusted"])
async def test_a_client_without_an_accepted_certificate_is_refused(
    serve: Serve, certificates: Certificates, client: str
) -> None:
    world = await secure(serve, certificates, ssl_client_auth="required")
    keystore = certificates.untrusted.keystore if client == "untrusted" else None
    with capture_logs() as logs:
        try:
            peer = await connect(world, certificates.ca, keystore)
            peer.send_request(1)
            assert await peer.ended()
        except OSError:
            pass
        await world.until(lambda: any(line["event"] == "TLS handshake failed" for line in logs))
    assert not world.calls


@pytest.mark.parametrize("data", [b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\xff\xff", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100])
async def test_a_peer_without_tls_is_closed_with_one_clear_line(
    serve: Serve, certificates: Certificates, data: bytes
) -> None:
    world = await secure(serve, certificates)
    with capture_logs() as logs:
        peer = await world.peer()
        peer.send(data)
        await peer.reader.read()
        await world.until(lambda: bool(logs))
    (line,) = logs
    assert line["event"] == "TLS handshake failed"
    assert "something else than TLS; is its security.protocol PLAINTEXT" in line["reason"]


async def test_a_peer_whose_handshake_fails_gets_the_alert(serve: Serve, certificates: Certificates) -> None:
    """SC5, before and after the handshake's own encryption begins."""
    world = await secure(serve, certificates, ssl_client_auth="required")
    peer = await world.peer()
    peer.send(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
    assert (await peer.reader.read())[:1] == b"\x15"
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        assert "ALERT" in await asyncio.to_thread(_refusal, world.port, certificates.ca, version)


def _refusal(port: int, ca: Path, version: ssl.TLSVersion) -> str:
    """The error of a client without a certificate; for TLS 1.3 it comes with the first bytes that it reads."""
    context = ssl.create_default_context(cafile=str(ca))
    context.maximum_version = version
    try:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as connected,
            context.wrap_socket(connected, server_hostname="localhost") as client,
        ):
            client.recv(1)
    except ssl.SSLError as error:
        return error.reason or ""
    return "closed"


async def test_the_same_refusal_of_a_host_is_not_written_again(serve: Serve, certificates: Certificates) -> None:
    world = await secure(serve, certificates)
    with capture_logs() as logs:
        for _ in range(11):
            peer = await world.peer()
            peer.send(b"GET / HTTP/1.1\r\n\r\n")
            await peer.reader.read()
        await world.until(lambda: len(logs) == 2)
    assert [line["count"] for line in logs] == [1, 10]


async def test_a_handshake_that_does_not_end_is_closed(serve: Serve, certificates: Certificates) -> None:
    world = await secure(serve, certificates, rota_authentication_timeout_ms="500")
    peer = await world.peer()
    await world.until(lambda: len(world.listener.unauthenticated) == 1)
    world.now_ms += 499
    world.listener._look()
    assert len(world.listener.unauthenticated) == 1
    world.now_ms += 1
    world.listener._look()
    assert len(world.listener.unauthenticated) == 0
    assert await peer.ended()


async def test_the_oldest_handshake_beyond_the_limit_is_closed(serve: Serve, certificates: Certificates) -> None:
    world = await secure(serve, certificates, rota_unauthenticated_connections_max="2")
    peers = []
    for count in (1, 2, 2):
        peers.append(await world.peer())
        await world.until(lambda count=count: len(world.listener.unauthenticated) == count)  # type: ignore[misc]
    assert await peers[0].ended()
    peer = await connect(world, certificates.ca)
    peer.send_request(1)
    assert await peer.answers() == 1


@pytest.mark.parametrize("hold_ms", [0, 600_000])
async def test_sockets_that_are_no_connections_yet_leave_open_files_to_the_logs(
    hold_ms: int, serve: Serve, certificates: Certificates
) -> None:
    """N13. Three connections: one that is served, and handshakes that do not go on or sockets that are held."""
    world = await secure(serve, certificates)
    world.connections._files_limit = 4  # a quarter is left to the logs
    peer = await connect(world, certificates.ca)
    peer.send_request(1)
    assert await peer.answers() == 1
    await world.until(lambda: len(world.connections.accepted_sockets) == 0)
    world.connections.delay_ms = lambda host: hold_ms
    first, _ = await world.peer(), await world.peer()
    await world.until(lambda: len(world.connections.accepted_sockets) == 2)
    assert await (await world.peer()).ended()
    if not hold_ms:  # a handshake made room for the next client
        assert await first.ended()
        another = await connect(world, certificates.ca)
        another.send_request(2)
        assert await another.answers() == 2


async def test_clients_cannot_shut_brokers_out_of_a_listener_with_tls(serve: Serve, certificates: Certificates) -> None:
    """N14. The clients have all open files that the logs leave: none is left for a handshake."""
    world = await secure(
        serve,
        certificates,
        listeners="SSL://127.0.0.1:0,CLIENTS://127.0.0.1:0",
        listener_security_protocol_map="SSL:SSL,CLIENTS:PLAINTEXT",
        security_inter_broker_protocol="SSL",
    )
    world.connections._files_limit = 2
    between, world.port = world.port, world.bound[1].port
    first, second = await world.peer(), await world.peer()
    first.send_request(1)
    assert await first.answers() == 1
    await world.until(lambda: len(world.connections) == 2)
    world.port = between
    broker = await connect(world, certificates.ca)
    broker.send_request(2)
    assert (await broker.answers(), await second.ended()) == (2, True)
    first.send_request(3)
    assert await first.answers() == 3


async def test_a_client_that_is_refused_does_not_hinder_the_next_one(serve: Serve, certificates: Certificates) -> None:
    world = await secure(serve, certificates)
    for _ in range(3):
        with pytest.raises(ssl.SSLCertVerificationError):
            await connect(world, certificates.other_ca)
    peer = await connect(world, certificates.ca)
    peer.send_request(1)
    assert await peer.answers() == 1
    await world.until(lambda: len(world.listener.unauthenticated) == 0)


def test_an_unknown_error_of_openssl_is_shown_as_it_is() -> None:
    assert _reason(OSError("nobody foresaw this")) == "nobody foresaw this"


async def test_a_server_that_is_closed_before_it_accepts_closes_its_socket(certificates: Certificates) -> None:
    """The task of a server that is closed at once never runs."""
    config = BrokerConfig(
        {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": str(certificates.server.keystore)}
    )
    async with Broker(config, memory=True) as broker:
        (server,) = broker.listener._servers
        (listening,) = server.sockets
    assert listening.fileno() == -1


async def with_sasl(serve: Serve, certificates: Certificates) -> World:
    return await serve(
        listeners="SASL_SSL://127.0.0.1:0",
        ssl_keystore_location=str(certificates.server.keystore),
        sasl_enabled_mechanisms="SCRAM-SHA-256",
        rota_authentication_timeout_ms="500",
    )


@asynccontextmanager
async def silent(serve: Serve, certificates: Certificates) -> AsyncIterator[tuple[World, SilentTls]]:
    """A listener with TLS and SASL, and a client that has done its TLS handshake and ignores the broker's end."""
    world = await with_sasl(serve, certificates)
    async with SilentTls(world.port, certificates.ca) as peer:
        await world.until(lambda: len(world.connections) == 1)
        yield world, peer


async def turns(count: int = 20) -> None:
    """Let the loop turn so often: a close that waits for nothing is done then."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_client_whose_time_is_over_is_closed_without_its_consent(
    serve: Serve, certificates: Certificates
) -> None:
    async with silent(serve, certificates) as (world, _):
        assert len(world.listener.unauthenticated) == 1
        world.now_ms += 500
        world.listener._look()
        await turns()
        assert len(world.connections) == 0


async def test_a_client_that_is_being_closed_counts_until_it_is(serve: Serve, certificates: Certificates) -> None:
    """It has been refused, so that the broker has said its end; the client does not answer it."""
    async with silent(serve, certificates) as (world, peer):
        peer.send(struct.pack(">ihhih", 10, 3, 9, 7, -1))  # Metadata, which is not served
        assert await peer.read(1) == b""
        assert (len(world.connections), len(world.listener.unauthenticated)) == (1, 1)
        world.now_ms += 500
        world.listener._look()
        await turns()
        assert (len(world.connections), len(world.listener.unauthenticated)) == (0, 0)


async def test_tls_and_sasl_have_one_time_together(serve: Serve, certificates: Certificates) -> None:
    """The time of a client begins with its TCP connection, and is not begun anew after its TLS handshake."""
    world = await with_sasl(serve, certificates)
    peer = SilentTls(world.port, certificates.ca)
    await peer.connect()
    await world.until(lambda: len(world.listener.unauthenticated) == 1)
    world.now_ms += 499
    async with peer:
        await world.until(lambda: len(world.connections) == 1)
        await turns()
        world.now_ms += 1
        world.listener._look()
        await turns()
        assert len(world.connections) == 0


async def test_connections_above_their_number_are_closed_without_their_consent(
    serve: Serve, certificates: Certificates
) -> None:
    world = await secure(serve, certificates, max_connections="1")
    async with SilentTls(world.port, certificates.ca), SilentTls(world.port, certificates.ca):
        await world.until(lambda: world.connections.refused_count == 1)
        await turns()
        assert len(world.connections) == 1


async def test_a_client_that_ignores_the_end_of_its_connection_is_closed(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_server, "SHUTDOWN_SECONDS_MAX", 0.01)
    world = await secure(serve, certificates)
    async with SilentTls(world.port, certificates.ca) as peer:
        await world.until(lambda: len(world.connections) == 1)
        peer.send(b"\xff\xff\xff\xff")  # a frame of a negative length
        await world.until(lambda: len(world.connections) == 0)
