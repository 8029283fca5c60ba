"""confluent-kafka and kafka-python on Rota's listeners with TLS and SASL, wrong passwords included."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import KafkaAdminClient
from tools.peer.certificates import Authority

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig

pytestmark = pytest.mark.interop

LISTENERS = {"SSL": "SSL", "MTLS": "SSL", "SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="planted-password";'
FLUSH_S = 10


def settings(authority: Authority) -> dict[str, str]:
    server = authority.issue("server", hosts=("localhost", "127.0.0.1"))
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server.keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
        "rota.scram.bootstrap.users": "alice=planted-password",
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_clients_log_in_with_the_right_password_alone(mechanism: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with Broker(BrokerConfig(settings(authority)), memory=True) as broker:
        ports = [server.sockets[0].getsockname()[1] for server in broker.listener._servers]
        at = dict(zip(LISTENERS, ports, strict=True))
        for listener in ("SASL_PLAINTEXT", "SASL_SSL"):
            for password in ("planted-password", "wrong"):
                is_right = password != "wrong"
                arguments = (at[listener], listener, mechanism, password, authority.certificate)
                assert await asyncio.to_thread(produces, *arguments) is is_right, (listener, password)
                if is_right:
                    assert await asyncio.to_thread(lists_topics, *arguments)


async def test_a_client_with_a_certificate_is_served(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    client = authority.issue("client")
    async with Broker(BrokerConfig(settings(authority)), memory=True) as broker:
        ports = [server.sockets[0].getsockname()[1] for server in broker.listener._servers]
        tls = {"security.protocol": "SSL", "ssl.ca.location": str(authority.certificate)}
        own = {"ssl.certificate.location": str(client.certificate), "ssl.key.location": str(client.key)}
        for port, config, expected in ((ports[0], tls, True), (ports[1], {**tls, **own}, True), (ports[1], tls, False)):
            assert await asyncio.to_thread(delivers, port, config) is expected


def produces(port: int, protocol: str, mechanism: str, password: str, ca: Path) -> bool:
    config: dict[str, Any] = {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        "ssl.ca.location": str(ca),
    }
    return delivers(port, config)


def delivers(port: int, config: dict[str, Any]) -> bool:
    """Return whether a record is acknowledged; a refused login or handshake ends it early."""
    refused: list[KafkaError] = []
    producer = Producer(
        {"bootstrap.servers": f"localhost:{port}", "error_cb": refused.append, "log_level": 0, **config}
    )
    producer.produce("t", b"v")
    for _ in range(FLUSH_S * 10):
        if not producer.flush(0.1):
            return True
        if refused:
            producer.purge()
            return False
    return False


def lists_topics(port: int, protocol: str, mechanism: str, password: str, ca: Path) -> bool:
    admin = KafkaAdminClient(
        bootstrap_servers=f"localhost:{port}",
        security_protocol=protocol,
        ssl_cafile=str(ca),
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=password,
    )
    try:
        return "t" in admin.list_topics()
    finally:
        admin.close()
