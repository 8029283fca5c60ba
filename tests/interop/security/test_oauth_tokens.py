"""OAUTHBEARER on Rota's listeners: confluent-kafka, kafka-python, a Java tool of Kafka's, and our own client."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from confluent_kafka import Producer
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider
from tests.interop.java_kit import needs_java, run_java
from tools.peer.secure import unsecured_token

from rota.client import Admin, AdminConfig, AuthenticationFailed
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig

pytestmark = pytest.mark.interop

FLUSH_S = 10
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
KEY, STRANGER = (rsa.generate_private_key(65537, 2048) for _ in range(2))


def settings(folder: Path) -> dict[str, str]:
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": [{**RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "one"}]}))
    return {
        "listeners": "SIGNED://127.0.0.1:0,UNSECURED://127.0.0.1:0",
        "listener.security.protocol.map": "SIGNED:SASL_PLAINTEXT,UNSECURED:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "rota",
        "listener.name.unsecured.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
    }


def signed(seconds: float = 60, key: Any = KEY, **claims: Any) -> str:
    now = int(time.time())
    all_claims = {"sub": "alice", "aud": "rota", "iat": now, "exp": int(now + seconds), **claims}
    return jwt.encode(all_claims, key, algorithm="RS256", headers={"kid": "one"})


def port_of(broker: Broker, listener: int) -> int:
    port: int = broker.listener._servers[listener].sockets[0].getsockname()[1]
    return port


TOKENS = [
    (lambda: signed(), 0, True),
    (lambda: signed(key=STRANGER), 0, False),
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
        tokens.append(signed(2))
        return tokens[-1]

    async with (
        Broker(BrokerConfig(settings(tmp_path)), memory=True) as broker,
        own(port_of(broker, 0), provider) as admin,
    ):
        ends = time.monotonic() + 5
        while time.monotonic() < ends:
            await admin.list_topics()
        assert len(tokens) > 2
        (connection,) = broker.listener.connections
        assert str(connection.principal) == "User:alice"


async def test_our_client_is_told_that_its_token_is_invalid(tmp_path: Path) -> None:
    async def provider() -> str:
        return signed(key=STRANGER)

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
