"""aiokafka, confluent-kafka, kafka-python and Java's clients on Rota's listeners: TLS, mTLS, SCRAM, bearer tokens.

Each writes a record and reads it in a group, and is refused with a wrong password or without its certificate.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from tests.interop.differential.wire import Wire
from tests.interop.java_kit import needs_java, run_java, run_java_failing
from tests.interop.kit import unique
from tests.interop.security.rota_broker import SecureRota
from tools.peer.secure import PASSWORD, USER, unsecured_token

from rota.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData

pytestmark = pytest.mark.interop

READ_S_MAX = 30
VALUE_BYTES, BURST_WINDOWS = 60_000, 10
JAVA = str(Path(__file__).parents[1] / "java" / "Secure.java")
WAYS = ("SSL", "MTLS", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENERS = {"SSL": "SSL", "MTLS": "MTLS", "OAUTHBEARER": "OAUTH"}  # of the others SASL_SSL
TOPICS, CONFIGS = "org.apache.kafka.tools.TopicCommand", "kafka.admin.ConfigCommand"
_MODULE = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureRota]:
    with SecureRota(tmp_path_factory.mktemp("secure")) as running:
        yield running


def address(broker: SecureRota, way: str) -> str:
    return broker.address(LISTENERS.get(way, "SASL_SSL"))


def protocol(way: str) -> str:
    return {"SSL": "SSL", "MTLS": "SSL", "OAUTHBEARER": "SASL_PLAINTEXT"}.get(way, "SASL_SSL")


# ---- aiokafka


class TokenProvider(AbstractTokenProvider):
    async def token(self) -> str:
        return unsecured_token(USER, 60)


def aiokafka_settings(broker: SecureRota, way: str, password: str = PASSWORD) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=str(broker.ca))
    if way == "MTLS" and password == PASSWORD:
        context.load_cert_chain(broker.client.keystore)
    settings: dict[str, Any] = {"bootstrap_servers": address(broker, way), "security_protocol": protocol(way)}
    if protocol(way).endswith("SSL"):
        settings["ssl_context"] = context
    if way.startswith("SCRAM"):
        settings |= {"sasl_mechanism": way, "sasl_plain_username": USER, "sasl_plain_password": password}
    elif way == "OAUTHBEARER":
        settings |= {"sasl_mechanism": way, "sasl_oauth_token_provider": TokenProvider()}
    return settings


@pytest.mark.parametrize("way", [*WAYS, "OAUTHBEARER"])
async def test_aiokafka(broker: SecureRota, way: str) -> None:
    settings, topic = aiokafka_settings(broker, way), unique("aiokafka")
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait(topic, b"value")
    consumer = AIOKafkaConsumer(topic, group_id=unique("group"), auto_offset_reset="earliest", **settings)
    async with asyncio.timeout(READ_S_MAX), consumer:
        assert (await consumer.getone()).value == b"value"


@pytest.mark.parametrize("way", ["MTLS", "SCRAM-SHA-512"])
async def test_aiokafka_is_refused(broker: SecureRota, way: str) -> None:
    producer = AIOKafkaProducer(**aiokafka_settings(broker, way, "planted-wrong"))
    with pytest.raises(Exception, match=r".") as refused:
        await producer.start()
    await producer.stop()
    assert "planted" not in str(refused.value)


# ---- confluent-kafka


def confluent_settings(broker: SecureRota, way: str) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": address(broker, way),
        "security.protocol": protocol(way),
        "ssl.ca.location": str(broker.ca),
        "log_level": 0,
    }
    if way == "MTLS":
        settings |= {
            "ssl.certificate.location": str(broker.client.certificate),
            "ssl.key.location": str(broker.client.key),
        }
    elif way.startswith("SCRAM"):
        settings |= {"sasl.mechanism": way, "sasl.username": USER, "sasl.password": PASSWORD}
    elif way == "OAUTHBEARER":
        settings |= {"sasl.mechanism": way, "oauth_cb": lambda _: (unsecured_token(USER, 60), time.time() + 60)}
    return settings


@pytest.mark.parametrize("way", [*WAYS, "OAUTHBEARER"])
async def test_confluent_kafka(broker: SecureRota, way: str) -> None:
    assert await asyncio.to_thread(confluent_round_trip, confluent_settings(broker, way)) == b"value"


def confluent_round_trip(settings: dict[str, Any]) -> bytes | None:
    topic = unique("confluent")
    producer = Producer(settings)
    producer.produce(topic, b"value")
    assert producer.flush(READ_S_MAX) == 0
    consumer = Consumer({**settings, "group.id": unique("group"), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(READ_S_MAX)
        return None if message is None or message.error() else message.value()
    finally:
        consumer.close()


async def test_the_quota_of_a_user_is_that_of_its_login(broker: SecureRota) -> None:
    """CQ6, CQ9. The user is made by the same client; another one, of the same client id, has no quota."""
    await asyncio.to_thread(limit_user, broker, "limited")
    assert max(await asyncio.to_thread(throttle_times, broker, "limited")) > 0
    assert await asyncio.to_thread(throttle_times, broker) == []


def limit_user(broker: SecureRota, user: str) -> None:
    """A record and a half in all windows of its producer_byte_rate."""
    admin = AdminClient(confluent_settings(broker, "SSL"))
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    made = UserScramCredentialUpsertion(user, credential, PASSWORD.encode())
    admin.alter_user_scram_credentials([made])[user].result(READ_S_MAX)
    wire = Wire(broker.address("PLAINTEXT"), "admin")
    op = OpData(key="producer_byte_rate", value=1.5 * VALUE_BYTES / BURST_WINDOWS)
    entry = EntryData(entity=(EntityData(entity_type="user", entity_name=user),), ops=(op,))
    assert wire.send_request(AlterClientQuotasRequest(entries=(entry,)), 1).entries[0].error_code == 0
    wire.close()


def throttle_times(broker: SecureRota, user: str = USER) -> list[float]:
    """Those of which a producer hears with its first two records."""
    found: list[float] = []
    settings = {**confluent_settings(broker, "SCRAM-SHA-256"), "sasl.username": user, "linger.ms": 0}
    producer = Producer(
        {**settings, "client.id": "one", "throttle_cb": lambda event: found.append(event.throttle_time)}
    )
    for _ in range(2):
        producer.produce("limited", b"x" * VALUE_BYTES)
        assert producer.flush(READ_S_MAX) == 0
    producer.poll(0.1)
    return found


# ---- kafka-python


@pytest.mark.parametrize("way", WAYS)
async def test_kafka_python(broker: SecureRota, way: str) -> None:
    settings: dict[str, Any] = {
        "bootstrap_servers": address(broker, way),
        "security_protocol": protocol(way),
        "ssl_cafile": str(broker.ca),
    }
    if way == "MTLS":
        settings |= {"ssl_certfile": str(broker.client.certificate), "ssl_keyfile": str(broker.client.key)}
    elif way.startswith("SCRAM"):
        settings |= {"sasl_mechanism": way, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    assert await asyncio.to_thread(kafka_python_round_trip, settings) == [b"value"]


def kafka_python_round_trip(settings: dict[str, Any]) -> list[bytes]:
    topic = unique("python")
    producer = KafkaProducer(**settings)
    producer.send(topic, b"value").get(READ_S_MAX)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        group_id=unique("group"),
        auto_offset_reset="earliest",
        consumer_timeout_ms=READ_S_MAX * 1_000,
        **settings,
    )
    try:
        return [next(consumer).value]
    finally:
        consumer.close()


async def test_kafka_python_is_refused(broker: SecureRota) -> None:
    way = "SCRAM-SHA-512"
    settings: dict[str, Any] = {
        "bootstrap_servers": address(broker, way),
        "security_protocol": protocol(way),
        "ssl_cafile": str(broker.ca),
        "sasl_mechanism": way,
        "sasl_plain_username": USER,
        "sasl_plain_password": "planted-wrong",
        "bootstrap_timeout_ms": 1_000,  # it tries for so long
    }
    with pytest.raises(KafkaError) as refused:
        await asyncio.to_thread(KafkaAdminClient, **settings)
    assert "planted" not in str(refused.value)


# ---- Java, all in one process


def java_settings(broker: SecureRota, way: str, password: str = PASSWORD) -> dict[str, str]:
    settings = {"bootstrap.servers": address(broker, way), "security.protocol": protocol(way)}
    if protocol(way).endswith("SSL"):
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(broker.ca)}
    if way == "MTLS" and password == PASSWORD:
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(broker.client.keystore)}
    elif way.startswith("SCRAM"):
        jaas = f'{_MODULE}.scram.ScramLoginModule required username="{USER}" password="{password}";'
        settings |= {"sasl.mechanism": way, "sasl.jaas.config": jaas}
    elif way == "OAUTHBEARER":
        module = f"{_MODULE}.oauthbearer.OAuthBearerLoginModule"
        jaas = f'{module} required unsecuredLoginStringClaim_sub="{USER}";'
        settings |= {"sasl.mechanism": way, "sasl.jaas.config": jaas}
    return settings


@pytest.mark.java
@needs_java[1]
async def test_java(broker: SecureRota, tmp_path: Path) -> None:
    expected = dict.fromkeys((*WAYS, "OAUTHBEARER"), "ok")
    files = []
    for way in expected:
        files.append(write(tmp_path / way, java_settings(broker, way)))
    for way, error in (("SCRAM-SHA-512", "SaslAuthenticationException"), ("MTLS", "SSLHandshakeException")):
        files.append(write(tmp_path / f"wrong-{way}", java_settings(broker, way, "planted-wrong")))
        expected[f"wrong-{way}"] = error
    printed = await asyncio.to_thread(run_java, JAVA, *files)
    results = dict(line.split(" ", 1) for line in printed.splitlines() if line.split(" ")[0] in expected)
    assert results == expected


@pytest.mark.java
@needs_java[1]
async def test_java_tools(broker: SecureRota, tmp_path: Path) -> None:
    """kafka-topics and kafka-configs, unmodified, with a file of settings; each way with ROTA_TEST_SUITES=all."""
    for way in (*WAYS, "OAUTHBEARER") if os.environ.get("ROTA_TEST_SUITES") == "all" else ("SCRAM-SHA-512",):
        config, topic = write(tmp_path / way, java_settings(broker, way)), unique("tools")
        common = ("--bootstrap-server", address(broker, way), "--command-config", config)
        await asyncio.to_thread(
            run_java, TOPICS, *common, "--create", "--topic", topic, "--config", "retention.ms=60000"
        )
        described = await asyncio.to_thread(run_java, CONFIGS, *common, "--describe", "--topic", topic)
        assert "retention.ms=60000" in described
    wrong = write(tmp_path / "wrong", java_settings(broker, "SCRAM-SHA-512", "planted-wrong"))
    where = ("--bootstrap-server", broker.address("SASL_SSL"), "--command-config", wrong)
    refused = await asyncio.to_thread(run_java_failing, TOPICS, *where, "--list")
    assert "invalid credentials" in refused
    assert "planted" not in refused


def write(path: Path, settings: dict[str, str]) -> str:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return str(path)
