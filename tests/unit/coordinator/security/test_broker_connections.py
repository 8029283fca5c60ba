"""Connections between brokers: the security of the inter-broker listener, against real listeners."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import pytest
from tests.unit.certificates import Certificates

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.security.broker_connections import (
    NotRegistered,
    NotSecured,
    connect_to_broker,
    security_between_brokers,
)
from rota.transport.connection import Connection
from rota.transport.errors import AuthenticationFailed, TlsFailed
from rota.transport.security import PLAINTEXT

JAAS = "listener.name.sasl_ssl.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = f'{MODULE} username="broker" password="{{}}" user_broker="right";'


def properties(certificates: Certificates, **changes: str) -> dict[str, str]:
    given = {
        "node.id": "7",
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(certificates.server.keystore),
        "ssl.truststore.location": str(certificates.ca),
        "sasl.enabled.mechanisms": "PLAIN",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        JAAS: USERS.format("right"),
    }
    return given | {name.replace("_", "."): text for name, text in changes.items()}


async def connection(broker: Broker, given: Mapping[str, str], listener: str = "SASL_SSL") -> Connection:
    registration = BrokerRegistration(broker_id=7, endpoints=(Endpoint(listener, *broker.address),))
    return await connect_to_broker(
        7,
        {7: registration},
        BrokerConfig(given),
        "test",
        setup_seconds=10,
        request_seconds=10,
        ended=lambda _: None,
    )


async def close(opened: Connection) -> None:
    opened.end(NotRegistered("the test is over"))
    await opened.closed()


async def test_a_broker_authenticates_with_the_credentials_of_its_own_listener(certificates: Certificates) -> None:
    """IB2."""
    given = properties(certificates)
    async with Broker(BrokerConfig(given), memory=True) as broker:
        await close(await connection(broker, given))
        with pytest.raises(AuthenticationFailed, match="refused the authentication with PLAIN"):
            await connection(broker, given | {JAAS: USERS.format("wrong")})
        with pytest.raises(NotRegistered, match="has no listener SASL_SSL"):
            await connection(broker, given, listener="PLAINTEXT")


@pytest.mark.parametrize(("algorithm", "is_checked"), [("https", True), ("HTTPS", True), ("", False)])
def test_the_certificate_of_a_broker_is_verified_and_its_host_name_as_configured(
    certificates: Certificates, algorithm: str, *, is_checked: bool
) -> None:
    """IB2. tests/cluster/test_secured_brokers.py has the handshake with a certificate that is not trusted."""
    given = properties(certificates) | {"ssl.endpoint.identification.algorithm": algorithm}
    tls = security_between_brokers(BrokerConfig(given)).tls
    assert tls is not None
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.check_hostname is is_checked
    assert [dict(pair[0] for pair in each["subject"])["commonName"] for each in tls.get_ca_certs()] == ["ca"]  # type: ignore[misc,union-attr]


async def test_a_broker_with_the_certificate_of_another_host_or_authority_is_refused(
    certificates: Certificates,
) -> None:
    given = properties(certificates, ssl_keystore_location=str(certificates.elsewhere.keystore))
    async with Broker(BrokerConfig(given), memory=True) as broker:
        with pytest.raises(TlsFailed, match="not for the host name 127"):
            await connection(broker, given)
        with pytest.raises(TlsFailed, match="an authority signed its certificate that the truststore does not have"):
            await connection(broker, given | {"ssl.truststore.location": str(certificates.other_ca)})
        await close(await connection(broker, given | {"ssl.endpoint.identification.algorithm": ""}))


async def test_settings_that_cannot_be_used_are_a_failure_of_the_connection(certificates: Certificates) -> None:
    given = properties(certificates)
    async with Broker(BrokerConfig(given), memory=True) as broker:
        with pytest.raises(NotSecured, match=r"ssl\.truststore\.location"):
            await connection(broker, given | {"ssl.truststore.location": "/absent.pem"})


@pytest.mark.parametrize(
    ("jaas", "message"),
    [
        ("secret", "Invalid value"),
        ('ScramLoginModule required username="secret" password="secret";', "has ScramLoginModule"),
        (f'{MODULE} username="secret";', "no username and password"),
    ],
)
def test_credentials_that_cannot_be_used_are_refused_without_being_shown(
    certificates: Certificates, jaas: str, message: str
) -> None:
    with pytest.raises(ConfigRefused, match=message) as refused:
        security_between_brokers(BrokerConfig(properties(certificates) | {JAAS: jaas}))
    assert "secret" not in str(refused.value)


def test_brokers_in_plain_text_have_neither_tls_nor_credentials() -> None:
    assert security_between_brokers(BrokerConfig({})) is PLAINTEXT


def test_a_changed_password_counts_for_the_next_connection(certificates: Certificates) -> None:
    """IB3."""
    config = BrokerConfig(properties(certificates))
    config.reconfigure({}, {JAAS: USERS.format("new")})
    login = security_between_brokers(config).login
    assert login is not None
    assert login._password == "new"  # type: ignore[attr-defined]
