"""OAUTHBEARER on Rota's listeners: confluent-kafka, kafka-python, a Java tool of Kafka's, and our own client."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider
from structlog.testing import capture_logs
from tests.interop.java_kit import needs_java, run_java
from tests.unit.certificates import Certificates, certificates
from tests.unit.identity_provider import SECRET, UNKNOWN_KEY, IdentityProvider, key_set, signed
from tools.peer.secure import unsecured_token

from rota.client import Admin, AdminConfig, AuthenticationFailed
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig

__all__ = ["certificates"]
pytestmark = pytest.mark.interop

FLUSH_S = 10
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


def settings(folder: Path) -> dict[str, str]:
    keys = folder / "keys.json"
    keys.write_text(json.dumps(key_set()))
    return {
        "listeners": "SIGNED://127.0.0.1:0,UNSECURED://127.0.0.1:0",
        "listener.security.protocol.map": "SIGNED:SASL_PLAINTEXT,UNSECURED:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "rota",
        "listener.name.unsecured.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
    }


def port_of(broker: Broker, listener: int) -> int:
    port: int = broker.listener._servers[listener].sockets[0].getsockname()[1]
    return port


TOKENS = [
    (lambda: signed(), 0, True),
    (lambda: signed(key=UNKNOWN_KEY), 0, False),
    (lambda: signed(-100), 0, False),
    (lambda: signed(aud="other"), 0, False),
    (lambda: unsecured_token("alice", 60), 0, False),
    (lambda: unsecured_token("alice", 60), 1, True),
    (lambda: signed(), 1, False),
]


@pytest.mark.parametrize(("token", "listener", "is_valid"), TOKENS)
async def test_confluent_kafka_logs_in_with_a_valid_token_alone(
    token: Any, listener: int, is_valid: bool, tmp_path: Path
) -> None:
    async with Broker(BrokerConfig(settings(tmp_path)), memory=True) as broker:
        assert await asyncio.to_thread(delivers, port_of(broker, listener), token()) is is_valid


def delivers(port: int, token: str) -> bool:
    """Return whether a record is acknowledged; a refused login ends it early."""
    refused: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + 60),
            "error_cb": refused.append,
            "log_level": 0,
        }
    )
    producer.produce("t", b"x")
    for _ in range(FLUSH_S * 10):
        if not producer.flush(0.1):
            return True
        if refused:
            producer.purge()
            return False
    return False


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


async def test_kafka_python_lists_topics_with_a_token(tmp_path: Path) -> None:
    async with Broker(BrokerConfig(settings(tmp_path)), memory=True) as broker:

        def lists_topics() -> list[str]:
            admin = KafkaAdminClient(
                bootstrap_servers=f"127.0.0.1:{port_of(broker, 0)}",
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="OAUTHBEARER",
                sasl_oauth_token_provider=Tokens(signed()),
            )
            try:
                return list(admin.list_topics())
            finally:
                admin.close()

        assert await asyncio.to_thread(lists_topics) == []


def own(port: int, provider: Any) -> Admin:
    return Admin(
        AdminConfig(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=provider,
        )
    )


async def test_our_client_renews_its_session_before_the_token_ends(tmp_path: Path) -> None:
    """Requests go on beyond the end of the first token, on the same connection."""
    tokens: list[str] = []

    async def provider() -> str:
        tokens.append(signed(3))
        return tokens[-1]

    async with (
        Broker(BrokerConfig(settings(tmp_path)), memory=True) as broker,
        own(port_of(broker, 0), provider) as admin,
        asyncio.timeout(60),
    ):
        while len(tokens) < 3:
            await admin.list_topics()
        await admin.list_topics()
        (connection,) = broker.listener.connections
        assert str(connection.principal) == "User:alice"


@asynccontextmanager
async def with_identity_provider(
    certificates: Certificates, trusted: Path
) -> AsyncIterator[tuple[IdentityProvider, Broker]]:
    """The provider, and a broker with TLS that reads its keys from it and trusts an authority of its JAAS text."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    jaas = f'{module} required ssl.truststore.location="{trusted}" ssl.truststore.type="PEM";'
    async with IdentityProvider().running(certificates.listener()) as provider:
        properties = {
            "listeners": "SASL_SSL://127.0.0.1:0",
            "ssl.keystore.location": str(certificates.server.keystore),
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/keys",
            "sasl.oauthbearer.expected.audience": "rota",
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": jaas,
        }
        async with Broker(BrokerConfig(properties), memory=True) as broker:
            yield provider, broker


def of_service(provider: IdentityProvider, broker: Broker, ca: Path, secret: str = SECRET) -> Admin:
    return Admin(
        AdminConfig(
            bootstrap_servers=f"localhost:{port_of(broker, 0)}",
            security_protocol="SASL_SSL",
            ssl_truststore_location=str(ca),
            https_ca_location=str(ca),
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=f"{provider.url}/token",
            sasl_oauthbearer_client_credentials_client_id="service",
            sasl_oauthbearer_client_credentials_client_secret=secret,
            sasl_oauthbearer_scope="kafka",
        )
    )


async def test_a_client_secret_becomes_a_token_that_the_keys_of_the_same_server_verify(
    certificates: Certificates,
) -> None:
    async with (
        with_identity_provider(certificates, certificates.ca) as (provider, broker),
        of_service(provider, broker, certificates.ca) as admin,
    ):
        assert await admin.list_topics() is not None
        (connection,) = broker.listener.connections
        assert str(connection.principal) == "User:service"
        assert provider.requests == ["keys", "service kafka"]
        with pytest.raises(AuthenticationFailed, match="invalid_client"):
            async with of_service(provider, broker, certificates.ca, "planted-wrong") as refused:
                await refused.list_topics()


async def test_librdkafka_exchanges_a_client_secret_for_a_token(certificates: Certificates) -> None:
    """`sasl.oauthbearer.method=oidc`."""
    async with with_identity_provider(certificates, certificates.ca) as (provider, broker):
        settings = {
            "bootstrap.servers": f"localhost:{port_of(broker, 0)}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(certificates.ca),
            "https.ca.location": str(certificates.ca),
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
            "sasl.oauthbearer.client.id": "service",
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.scope": "kafka",
            "log_level": 0,
        }
        assert await asyncio.to_thread(is_delivered, settings)
        assert provider.requests == ["keys", "service kafka"]


def is_delivered(settings: dict[str, Any]) -> bool:
    producer = Producer(settings)
    producer.produce("t", b"x")
    return producer.flush(FLUSH_S) == 0


async def test_keys_of_a_server_that_is_not_trusted_are_not_read(certificates: Certificates) -> None:
    with capture_logs() as logs:
        async with with_identity_provider(certificates, certificates.other_ca) as (provider, broker):
            with pytest.raises(AuthenticationFailed, match="invalid_token"):
                async with of_service(provider, broker, certificates.ca) as admin:
                    await admin.list_topics()
            assert "keys" not in provider.requests
    reasons = [line["reason"] for line in logs if line["event"] == "Keys for OAUTHBEARER cannot be read"]
    assert "certificate" in reasons[0].lower()


async def test_our_client_is_told_that_its_token_is_invalid(tmp_path: Path) -> None:
    async def provider() -> str:
        return signed(key=UNKNOWN_KEY)

    async with Broker(BrokerConfig(settings(tmp_path)), memory=True) as broker:
        with pytest.raises(AuthenticationFailed, match="invalid_token"):
            async with own(port_of(broker, 0), provider) as admin:
                await admin.list_topics()


@pytest.mark.java
@needs_java[1]
async def test_a_java_tool_creates_a_topic_with_an_unsecured_token(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={module} required unsecuredLoginStringClaim_sub="alice";\n'
    )
    async with Broker(BrokerConfig(settings(tmp_path)), memory=True) as broker:
        arguments = ("--command-config", str(config), "--create", "--topic", "t")
        address = f"127.0.0.1:{port_of(broker, 1)}"
        await asyncio.to_thread(
            run_java, "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", address, *arguments
        )
        assert "t" in broker.topics
