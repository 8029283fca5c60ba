"""Real handshakes over sockets: what is accepted, and what each failure says."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.certificates import Certificates
from tests.unit.client.network.scripted import Scripted
from tools.peer.certificates import KEY_PASSWORD, encrypted_key, pkcs12

from rota.transport.connection import Connection
from rota.transport.errors import SettingRefused, TlsFailed, Unreachable
from rota.transport.handshake import connect
from rota.transport.security import Security
from rota.transport.tls import STORE_BYTES_MAX, TlsSettings, client_context, tls_failure


async def dialled(port: int, security: Security, host: str = "localhost") -> Connection:
    return await connect(
        host, port, "1", "me", setup_seconds=10, request_seconds=10, ended=lambda _: None, security=security
    )


async def cipher_of(port: int, settings: TlsSettings, host: str = "localhost") -> Any:
    """Connect with these settings; return the cipher suite and the version of TLS."""
    connection = await dialled(port, Security(client_context(settings)), host)
    assert connection.versions
    assert connection._transport is not None
    cipher = connection._transport.get_extra_info("cipher")
    connection.end(Unreachable("the test is over"))
    await connection.closed()
    return cipher


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_broker_of_the_trusted_authority(certificates: Certificates, host: str) -> None:
    async with Scripted(tls=certificates.listener()) as broker:
        trusted = TlsSettings(truststore_location=str(certificates.ca))
        assert await cipher_of(broker.port, trusted, host)
        as_text = TlsSettings(truststore_certificates=certificates.ca.read_text())
        assert await cipher_of(broker.port, as_text, host)


async def test_the_truststore_may_have_the_certificate_itself(certificates: Certificates) -> None:
    async with Scripted(tls=certificates.listener()) as broker:
        assert await cipher_of(broker.port, TlsSettings(truststore_location=str(certificates.server.certificate)))


async def test_versions_and_cipher_suites_are_those_of_the_settings(certificates: Certificates) -> None:
    older = {"truststore_location": str(certificates.ca), "enabled_protocols": ("TLSv1.2",)}
    async with Scripted(tls=certificates.listener()) as broker:
        for name in ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"):
            found = await cipher_of(broker.port, TlsSettings(**older, cipher_suites=(name,)))  # type: ignore[arg-type]
            assert found[:2] == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2")
        found = await cipher_of(
            broker.port, TlsSettings(truststore_location=str(certificates.ca), enabled_protocols=("TLSv1.3",))
        )
        assert found[1] == "TLSv1.3"


@pytest.mark.parametrize(
    ("authority", "server", "answer"),
    [
        (
            "other_ca",
            "server",
            "an authority signed its certificate that the truststore does not have.*; set ssl_trust",
        ),
        ("ca", "elsewhere", "its certificate is not for the host name localhost"),
    ],
)
async def test_a_broker_that_is_not_trusted(
    certificates: Certificates, authority: str, server: str, answer: str
) -> None:
    async with Scripted(tls=certificates.listener(getattr(certificates, server))) as broker:
        security = Security(client_context(TlsSettings(truststore_location=str(getattr(certificates, authority)))))
        with pytest.raises(TlsFailed, match=f"no TLS connection to broker 1: {answer}"):
            await dialled(broker.port, security)
        assert not broker.requests


async def test_the_host_name_is_not_checked_when_that_is_set(certificates: Certificates) -> None:
    for off in ("", "none"):
        async with Scripted(tls=certificates.listener(certificates.elsewhere)) as broker:
            settings = TlsSettings(truststore_location=str(certificates.ca), endpoint_identification_algorithm=off)
            assert await cipher_of(broker.port, settings)


def own_forms(certificates: Certificates) -> list[TlsSettings]:
    """The settings by which a client may give its own certificate."""
    own, trusted = certificates.client, str(certificates.ca)
    key, chain = own.key.read_text(), own.certificate.read_text()
    encrypted = encrypted_key(own)
    return [
        TlsSettings(truststore_location=trusted, keystore_location=str(own.keystore)),
        TlsSettings(truststore_location=trusted, keystore_key=key, keystore_certificate_chain=chain),
        TlsSettings(truststore_location=trusted, certificate_location=str(own.certificate), key_location=str(own.key)),
        TlsSettings(
            truststore_location=trusted,
            keystore_key=encrypted.read_text(),
            keystore_certificate_chain=chain,
            key_password=KEY_PASSWORD,
        ),
    ]


def test_pem_on_one_line_is_read_as_kafka_does(certificates: Certificates) -> None:
    trusted = _on_one_line(certificates.ca.read_text())
    own = _on_one_line(certificates.client.keystore.read_text())
    context = client_context(
        TlsSettings(truststore_certificates=trusted, keystore_key=own, keystore_certificate_chain=own)
    )
    assert context.cert_store_stats()["x509"] == 1


def _on_one_line(pem: str) -> str:
    return " ".join(pem[pem.index("-----BEGIN") :].splitlines())


def test_a_certificate_that_is_not_ascii_is_refused_by_name() -> None:
    text = "-----BEGIN CERTIFICATE-----\n\u00e9\n-----END CERTIFICATE-----"
    with pytest.raises(SettingRefused, match=r"ssl_truststore_certificates .*no certificate in PEM"):
        client_context(TlsSettings(truststore_certificates=text))


async def test_a_client_with_a_certificate(certificates: Certificates) -> None:
    async with Scripted(tls=certificates.listener(requires_client=True)) as broker:
        for settings in own_forms(certificates):
            assert await cipher_of(broker.port, settings)


def refuse_one(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Accept one connection, and refuse it in the handshake as OpenSSL does: with an alert."""
    plug, _ = listener.accept()
    with plug, plug.dup() as raw:
        with contextlib.suppress(OSError), context.wrap_socket(plug, server_side=True) as secured:
            secured.recv(1)
        with contextlib.suppress(OSError):
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(4096):  # closing with unread bytes would take back the alert
                pass


@contextlib.asynccontextmanager
async def refusing(context: ssl.SSLContext) -> AsyncIterator[int]:
    """A listener that refuses one client; the port. (asyncio's own hangs up without the alert.)"""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        refused = asyncio.create_task(asyncio.to_thread(refuse_one, listener, context))
        yield listener.getsockname()[1]
        await refused


@pytest.mark.parametrize(
    ("own", "answer"),
    [(None, "requires a certificate of the client"), ("untrusted", "does not trust the authority of the client's")],
)
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_client_that_the_broker_refuses(
    certificates: Certificates, own: str | None, answer: str, version: str
) -> None:
    store = None if own is None else str(getattr(certificates, own).keystore)
    trusted = str(certificates.ca)
    settings = TlsSettings(truststore_location=trusted, keystore_location=store, enabled_protocols=(version,))
    async with refusing(certificates.listener(requires_client=True)) as port:
        with pytest.raises(TlsFailed, match=answer):
            await dialled(port, Security(client_context(settings)))


async def test_no_version_in_common(certificates: Certificates) -> None:
    listener = certificates.listener()
    listener.minimum_version = ssl.TLSVersion.TLSv1_3
    settings = TlsSettings(truststore_location=str(certificates.ca), enabled_protocols=("TLSv1.2",))
    async with refusing(listener) as port:
        with pytest.raises(TlsFailed, match="ssl_enabled_protocols"):
            await dialled(port, Security(client_context(settings)))


async def test_a_connection_closed_during_the_tls_handshake_is_retriable(certificates: Certificates) -> None:
    """As asyncio's listeners do, and brokers that are shut down."""
    security = Security(client_context(TlsSettings(truststore_location=str(certificates.ca))))
    async with Scripted(tls=certificates.listener(requires_client=True)) as broker:
        with pytest.raises(Unreachable, match=r"closed the connection|ssl_keystore_location"):
            await dialled(broker.port, security)


def refusals(certificates: Certificates, folder: Path) -> dict[str, tuple[TlsSettings, str]]:
    encrypted = encrypted_key(certificates.client).read_text()
    chain = certificates.client.certificate.read_text()
    jks, empty, huge = folder / "a.jks", folder / "empty.pem", folder / "huge.pem"
    jks.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    empty.write_bytes(b"")
    with huge.open("wb") as file:
        file.truncate(STORE_BYTES_MAX + 1)
    own = certificates.client
    return {
        "missing file": (TlsSettings(truststore_location="/no/such"), "ssl_truststore_location .*No such file"),
        "a folder": (TlsSettings(keystore_location=str(folder)), "ssl_keystore_location .*Is a directory"),
        "jks": (TlsSettings(truststore_location=str(jks)), "a JKS store, which only Java reads; convert it: keytool"),
        "empty": (TlsSettings(truststore_location=str(empty)), "neither PEM nor PKCS12"),
        "huge": (TlsSettings(truststore_location=str(huge)), "has more than 16777216 bytes"),
        "type": (TlsSettings(truststore_location=str(certificates.ca), truststore_type="DKS"), "one of PEM, PKCS12"),
        "only a key": (TlsSettings(truststore_location=str(own.key)), "no certificate in PEM"),
        "no key": (TlsSettings(keystore_location=str(own.certificate)), "no private key and certificate"),
        "half": (TlsSettings(keystore_key=own.key.read_text()), "ssl_keystore_certificate_chain go together"),
        "wrong pair": (
            TlsSettings(keystore_key=certificates.server.key.read_text(), keystore_certificate_chain=chain),
            "does not belong to its first certificate",
        ),
        "no password": (
            TlsSettings(keystore_key=encrypted, keystore_certificate_chain=chain),
            "an encrypted key: set ssl_key_password",
        ),
        "wrong password": (
            TlsSettings(keystore_key=encrypted, keystore_certificate_chain=chain, key_password="planted-wrong"),
            "ssl_key_password does not open",
        ),
        "versions": (TlsSettings(enabled_protocols=("SSLv3",)), "ssl_enabled_protocols .*TLSv1.2, TLSv1.3"),
        "no version": (TlsSettings(enabled_protocols=()), "ssl_enabled_protocols"),
        "ciphers": (TlsSettings(cipher_suites=("TLS_NO_SUCH",)), "ssl_cipher_suites .*TLS_NO_SUCH"),
    }


def test_settings_that_cannot_be_used_are_refused_by_name(certificates: Certificates, tmp_path: Path) -> None:
    for case, (settings, answer) in refusals(certificates, tmp_path).items():
        with pytest.raises(SettingRefused, match=answer) as refused:
            client_context(settings)
        assert "planted" not in str(refused.value), case
        assert "PRIVATE KEY" not in str(refused.value), case


def test_a_key_in_text_leaves_no_file(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for settings in own_forms(certificates):
        client_context(settings)
    assert list(tmp_path.iterdir()) == []


def test_secrets_are_in_no_repr() -> None:
    secret = dict.fromkeys(("truststore_password", "keystore_password", "keystore_key", "key_password"), "planted")
    assert "planted" not in repr(TlsSettings(**secret))  # type: ignore[arg-type]


def test_a_failure_keeps_its_broker_when_it_is_pickled() -> None:
    failure = tls_failure("b:1", "b", ssl.SSLError(1, "[SSL: SOMETHING] new"))
    assert pickle.loads(pickle.dumps(failure)).broker == "b:1"


def test_pkcs12_is_known_by_its_bytes(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package `cryptography` the error names it."""
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)
    store = pkcs12(certificates.client)
    for settings in (TlsSettings(keystore_location=str(store)), TlsSettings(truststore_location=str(store))):
        with pytest.raises(SettingRefused, match=r"pip install cryptography"):
            client_context(settings)


def test_a_password_that_openssl_does_not_take_is_refused_by_name(certificates: Certificates) -> None:
    own = TlsSettings(
        keystore_key=encrypted_key(certificates.client).read_text(),
        keystore_certificate_chain=certificates.client.keystore.read_text(), key_password="planted" * 300,
    )  # fmt: skip
    with pytest.raises(
        SettingRefused, match=r"ssl_keystore_key .*an encrypted key that ssl_key_password does not open"
    ):
        client_context(own)
