"""Brokers that reach each other over SASL_SSL alone, with an authorizer: replication, wrong credentials."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from structlog.testing import capture_logs
from tests.cluster.brokers import PATIENCE_SECONDS, Brokers, until
from tests.unit.identity_provider import SECRET, IdentityProvider, signed
from tools.peer.certificates import Authority

MECHANISM = "SCRAM-SHA-512"
JAAS = "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"
LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="{}";'
REFUSED = "No connection to a leader"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("brokers"))


@pytest.fixture(scope="module")
def secured(authority: Authority) -> dict[str, str]:
    return {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "ssl.keystore.location": str(authority.issue("broker", hosts=("127.0.0.1",)).keystore),
        "ssl.truststore.location": str(authority.certificate),
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        JAAS: LOGIN.format("planted-broker"),
        "rota.scram.bootstrap.users": "broker=planted-broker,alice=planted-alice",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker",
        "default.replication.factor": "3",
        "offsets.topic.replication.factor": "3",
        "replica.fetch.backoff.ms": "50",
    }


def client(brokers: Brokers, authority: Authority, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": brokers.bootstrap(1),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority.certificate),
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": f"planted-{user}",
    }


async def create(brokers: Brokers, authority: Authority, replicas: Sequence[int]) -> None:
    """Create the topic t with one partition, as the brokers' own user."""

    def run() -> None:
        topic = NewTopic("t", num_partitions=1, replica_assignment=[list(replicas)])
        admin = AdminClient(client(brokers, authority, "broker"))
        for future in admin.create_topics([topic]).values():
            future.result(PATIENCE_SECONDS)

    await asyncio.to_thread(run)


def isr(brokers: Brokers) -> set[int]:
    state = brokers.by_id[1].topics.partition("t", 0)
    return set(state.isr) if state is not None else set()


@contextmanager
def captured_log() -> Iterator[list[dict[str, Any]]]:
    """The log, in which no secret may be."""
    with capture_logs() as entries:
        yield entries  # type: ignore[misc]
    assert "planted" not in repr(entries)


def failures(entries: list[dict[str, Any]], leader: int) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["event"] == REFUSED and entry["leader"] == leader]


def check_one_warning(attempts: list[dict[str, Any]]) -> None:
    """Assert that the first failure is a warning, and that those after it are for who looks for them."""
    levels = [entry["log_level"] for entry in attempts]
    assert levels[0] == "warning"
    assert set(levels[1:]) == {"debug"}


async def test_records_are_replicated_and_a_client_with_acls_reads_them(
    authority: Authority, secured: dict[str, str]
) -> None:
    def allow(brokers: Brokers) -> None:
        acls = [
            AclBinding(kind, "*", ResourcePatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW)
            for kind, operation in (
                (ResourceType.TOPIC, AclOperation.READ),
                (ResourceType.TOPIC, AclOperation.WRITE),
                (ResourceType.GROUP, AclOperation.READ),
            )
        ]
        admin = AdminClient(client(brokers, authority, "broker"))
        for future in admin.create_acls(acls).values():
            future.result(PATIENCE_SECONDS)

    def produce_and_consume(brokers: Brokers) -> bytes:
        alice = client(brokers, authority, "alice")
        producer = Producer({**alice, "acks": "all"})
        delivered: list[object] = []
        producer.produce("t", b"value", on_delivery=lambda error, _: delivered.append(error))
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert delivered == [None]
        consumer = Consumer({**alice, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        message = consumer.poll(PATIENCE_SECONDS)
        consumer.close()
        assert message is not None
        assert message.error() is None
        return bytes(message.value() or b"")

    async with Brokers(3, secured) as brokers:
        await create(brokers, authority, (1, 2, 3))
        await asyncio.to_thread(allow, brokers)
        await until(
            lambda: all(b.authorizer is not None and len(list(b.authorizer.acls)) == 3 for b in brokers.by_id.values())
        )
        assert await asyncio.to_thread(produce_and_consume, brokers) == b"value"
        assert isr(brokers) == {1, 2, 3}
        logs = [partition.log for b in brokers.by_id.values() if (partition := b.partitions.get("t", 0)) is not None]
        assert [log.log_end_offset for log in logs] == [1, 1, 1]
        assert [each.total for b in brokers.by_id.values() if (each := b.node.denials) is not None and each.total] == []


def write_one(settings: dict[str, Any], replicas: Sequence[int]) -> None:
    """Create the topic t with one partition, and write a record to it on all replicas."""
    topic = NewTopic("t", num_partitions=1, replica_assignment=[list(replicas)])
    admin = AdminClient(settings)  # it ends its requests with itself
    for future in admin.create_topics([topic]).values():
        future.result(PATIENCE_SECONDS)
    producer = Producer({**settings, "acks": "all"})
    delivered: list[object] = []
    producer.produce("t", b"value", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert delivered == [None]


def check_copied(brokers: Brokers) -> None:
    assert isr(brokers) == {1, 2}
    logs = [partition.log for b in brokers.by_id.values() if (partition := b.partitions.get("t", 0)) is not None]
    assert [log.log_end_offset for log in logs] == [1, 1]
    assert [each.total for b in brokers.by_id.values() if (each := b.node.denials) is not None and each.total] == []


async def test_brokers_know_each_other_by_certificates_alone(authority: Authority, secured: dict[str, str]) -> None:
    """TLS without SASL: the certificate of a broker is its principal at the others; one without any is refused."""
    broker = authority.issue("by-certificate", hosts=("127.0.0.1",), subject="/O=Rota tests/CN=broker")
    given = {
        **{name: text for name, text in secured.items() if "sasl" not in name and "scram" not in name},
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": str(broker.keystore),
        "ssl.client.auth": "required",
        "super.users": "User:CN=broker,O=Rota tests",
    }
    async with Brokers(2, given) as brokers:
        settings = {
            "bootstrap.servers": brokers.bootstrap(1),
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.certificate),
            "ssl.certificate.location": str(broker.certificate),
            "ssl.key.location": str(broker.key),
        }
        await asyncio.to_thread(write_one, settings, (1, 2))
        check_copied(brokers)
        assert {str(each.principal) for each in brokers.by_id[1].listener.connections} == {
            "User:CN=broker,O=Rota tests"
        }


async def test_brokers_know_each_other_by_tokens(authority: Authority, secured: dict[str, str]) -> None:
    """OAUTHBEARER: each token is for the secret of the brokers."""
    listener = "listener.name.sasl_ssl.oauthbearer"
    async with IdentityProvider().running() as provider:
        module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
        given = {
            **{name: text for name, text in secured.items() if "scram" not in name},
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/keys",
            "sasl.oauthbearer.expected.audience": "rota",
            "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
            f"{listener}.sasl.jaas.config": f'{module} required clientId="broker" clientSecret="{SECRET}";',
        }
        async with Brokers(2, given) as brokers:
            settings = client(brokers, authority, "broker") | {
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": lambda _: (signed(sub="broker"), time.time() + 60),
            }
            with captured_log():
                await asyncio.to_thread(write_one, settings, (1, 2))
            check_copied(brokers)
            assert "broker None" in provider.requests


async def test_a_broker_with_a_wrong_password_says_so_once_and_copies_nothing(
    authority: Authority, secured: dict[str, str]
) -> None:
    async with Brokers(2, secured) as brokers:
        brokers.properties[JAAS] = LOGIN.format("planted-wrong")
        await brokers.start(3)
        await brokers.see_each_other()
        with captured_log() as entries:
            await create(brokers, authority, (1, 3))
            await until(lambda: len(failures(entries, 1)) > 3, "attempts")
        check_one_warning(failures(entries, 1))
        assert f"refused the authentication with {MECHANISM}" in failures(entries, 1)[0]["reason"]
        await brokers.stop(3)
        await until(lambda: isr(brokers) == {1}, "the ISR without broker 3")
        brokers.properties[JAAS] = LOGIN.format("planted-broker")
        await brokers.start(3)
        await until(lambda: isr(brokers) == {1, 3}, "the ISR with broker 3")


async def test_nothing_is_copied_from_a_broker_whose_certificate_is_not_trusted(
    authority: Authority, secured: dict[str, str], tmp_path: Path
) -> None:
    async with Brokers(2, secured) as brokers:
        untrusted = Authority(tmp_path, "other").issue("untrusted", hosts=("127.0.0.1",))
        brokers.properties["ssl.keystore.location"] = str(untrusted.keystore)
        await brokers.start(3)
        await brokers.see_each_other()
        with captured_log() as entries:
            await create(brokers, authority, (3, 1))
            await until(lambda: len(failures(entries, 3)) > 3, "attempts")
        check_one_warning(failures(entries, 3))
        reason = failures(entries, 3)[0]["reason"]
        assert "an authority signed its certificate that the truststore does not have" in reason
