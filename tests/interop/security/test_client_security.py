"""Rota's client against brokers with TLS and SASL, Rota and an Apache Kafka: each way in, each failure with its reason.

Kafka's side needs ROTA_PEER, as the other tests against Kafka, and starts a broker of its own beside it.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from tests.interop.kit import unique
from tests.interop.security.rota_broker import SecureRota
from tools.peer.certificates import KEY_PASSWORD, Authority, encrypted_key
from tools.peer.secure import MECHANISMS, PASSWORD, SESSION_MS, USER, SecureKafka, SecureListeners, unsecured_token

from rota.client import (
    Admin,
    AdminConfig,
    AuthenticationFailed,
    Consumer,
    ConsumerConfig,
    NewTopic,
    Producer,
    ProducerConfig,
    TlsFailed,
    Token,
)

KAFKA = (
    pytest.mark.peer,
    pytest.mark.skipif(not os.environ.get("ROTA_PEER"), reason="ROTA_PEER names no running Apache Kafka"),
)
FAILURE_SECONDS = 10.0
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module", params=["rota", pytest.param("kafka", marks=KAFKA)])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureListeners]:
    folder = tmp_path_factory.mktemp("secure")
    with SecureRota(folder) if request.param == "rota" else SecureKafka(folder) as running:
        yield running


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(Authority(tmp_path_factory.mktemp("other-ca"), "other").certificate)


def properties(broker: SecureListeners, listener: str, **settings: Any) -> dict[str, Any]:
    """The settings of a client for one listener, by Kafka's names."""
    protocol = {"MTLS": "SSL", "ELSEWHERE": "SSL", "SASL_SHORT": "SASL_PLAINTEXT", "OAUTH": "SASL_PLAINTEXT"}
    found = {"bootstrap.servers": broker.address(listener), "security.protocol": protocol.get(listener, listener)}
    if found["security.protocol"].endswith("SSL"):
        found["ssl.truststore.location"] = str(broker.ca)
    return found | {name.replace("_", "."): value for name, value in settings.items()}


def password_of(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {"sasl_mechanism": mechanism, "sasl_username": USER, "sasl_password": password}


async def round_trip(settings: dict[str, Any]) -> None:
    """Create a topic, write to it, read from it in a group."""
    topic = unique("secure")
    async with Admin(AdminConfig.from_properties(settings)) as admin:
        await admin.create_topics([NewTopic(topic, 1)])
    async with Producer(ProducerConfig.from_properties(settings)) as producer:
        await (await producer.send(topic, b"value"))
    group = {"group.id": unique("group"), "auto.offset.reset": "earliest"}
    async with Consumer(ConsumerConfig.from_properties(settings | group)) as consumer:
        consumer.subscribe([topic])
        async with asyncio.timeout(30):
            while not (records := await consumer.getmany(timeout_ms=1_000)):
                pass
        await consumer.commit()
    assert [record.value for batch in records.values() for record in batch] == [b"value"]


async def test_tls(broker: SecureListeners) -> None:
    await round_trip(properties(broker, "SSL"))
    own = ssl.create_default_context(cafile=str(broker.ca))
    await round_trip({"bootstrap.servers": broker.address("SSL"), "security.protocol": "SSL", "ssl.context": own})


async def test_mutual_tls(broker: SecureListeners) -> None:
    key, chain = encrypted_key(broker.client).read_text(), broker.client.certificate.read_text()
    await round_trip(properties(broker, "MTLS", ssl_keystore_location=str(broker.client.keystore)))
    await round_trip(
        properties(
            broker,
            "MTLS",
            ssl_keystore_key=key,
            ssl_keystore_certificate_chain=chain,
            ssl_key_password=KEY_PASSWORD,
        )
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
async def test_a_user_with_a_password(broker: SecureListeners, listener: str, mechanism: str) -> None:
    await round_trip(properties(broker, listener, **password_of(mechanism)))


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)])
async def test_the_settings_of_a_java_client(broker: SecureListeners, mechanism: str, module: str) -> None:
    jaas = f'{module} required username="{USER}" password="{PASSWORD}";'
    await round_trip(properties(broker, "SASL_SSL", sasl_mechanism=mechanism, sasl_jaas_config=jaas))


async def test_bearer_tokens(broker: SecureListeners) -> None:
    async def provider() -> Token:
        return Token(unsecured_token(USER, 60), extensions={"traceId": "123"})

    await round_trip(properties(broker, "OAUTH", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=provider))


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_sessions_are_renewed_without_a_gap(broker: SecureListeners, mechanism: str) -> None:
    """A producer writes through three sessions; each record is delivered, and none was sent twice."""
    settings = properties(broker, "SASL_SHORT", **password_of(mechanism))
    topic = unique("renewed")
    async with Admin(AdminConfig.from_properties(settings)) as admin:
        await admin.create_topics([NewTopic(topic, 1)])
    loop = asyncio.get_running_loop()
    async with Producer(
        ProducerConfig.from_properties(settings | {"retries": "0", "enable.idempotence": False})
    ) as out:
        until = loop.time() + 3 * SESSION_MS / 1000
        offsets = []
        while loop.time() < until:
            offsets.append((await (await out.send(topic, b"x"))).offset)
    assert offsets == list(range(len(offsets)))


def failures(
    broker: SecureListeners, other_ca: str
) -> dict[str, tuple[dict[str, Any], type[AuthenticationFailed], str]]:
    async def expired() -> str:
        return unsecured_token(USER, -60)

    wrong = {
        f"wrong password, {mechanism}": (
            properties(broker, "SASL_SSL", **password_of(mechanism, "planted-wrong")),
            AuthenticationFailed,
            f"refused the authentication with {mechanism}: Authentication failed",
        )
        for mechanism in MECHANISMS
    }
    return wrong | {
        "unknown user": (
            properties(broker, "SASL_PLAINTEXT", **password_of("SCRAM-SHA-256") | {"sasl_username": "nobody"}),
            AuthenticationFailed,
            "refused the authentication with SCRAM-SHA-256",
        ),
        "other mechanism": (
            properties(broker, "SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=expired),
            AuthenticationFailed,
            "it does not have this mechanism; it has .*PLAIN",
        ),
        "unknown authority": (
            properties(broker, "SSL") | {"ssl.truststore.location": other_ca},
            TlsFailed,
            "an authority signed its certificate that the truststore does not have",
        ),
        "other host": (properties(broker, "ELSEWHERE"), TlsFailed, "not for the host name localhost"),
        "TLS to a plaintext port": (
            properties(broker, "SSL") | {"bootstrap.servers": broker.address("PLAINTEXT")},
            TlsFailed,
            "its listener answers in plain text",
        ),
        "plaintext to a TLS port": (
            {"bootstrap.servers": broker.address("SSL")},
            TlsFailed,
            "this port is a TLS listener; set security_protocol",
        ),
        "no SASL to a listener with it": (
            {"bootstrap.servers": broker.address("SASL_PLAINTEXT")},
            AuthenticationFailed,
            "its listener requires SASL .*SCRAM-SHA-512.*: set security_protocol",
        ),
        "SASL to a listener without": (
            properties(broker, "SASL_PLAINTEXT", **password_of("PLAIN"))
            | {"bootstrap.servers": broker.address("PLAINTEXT")},
            AuthenticationFailed,
            "its listener has no SASL",
        ),
    }


async def started(client: Any) -> None:
    async with client:
        pass


async def test_a_client_without_the_certificate_that_is_required(broker: SecureListeners) -> None:
    """Both brokers refuse it with an alert, which names the setting at the first attempt."""
    made = Admin(AdminConfig.from_properties(properties(broker, "MTLS")))
    with pytest.raises(TlsFailed, match="ssl_keystore_location"):
        await asyncio.wait_for(started(made), FAILURE_SECONDS)


async def test_every_failure_is_raised_at_once_with_its_reason(broker: SecureListeners, other_ca: str) -> None:
    """In the time of one attempt, not of default_api_timeout_ms; no text has a secret."""
    for case, (settings, kind, answer) in failures(broker, other_ca).items():
        for client, config in ((Admin, AdminConfig), (Producer, ProducerConfig), (Consumer, ConsumerConfig)):
            made: Any = client(config.from_properties(settings))
            with pytest.raises(kind, match=answer) as failed:
                await asyncio.wait_for(started(made), FAILURE_SECONDS)
            assert "planted" not in str(failed.value), case
