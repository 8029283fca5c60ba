"""Key stores that IncrementalAlterConfigs sets on a running broker count for the next connection (SC3)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.interop.kit import unique
from tools.peer.certificates import KEY_PASSWORD, Authority, Certificate, pkcs12

from rota.client import Admin, AdminConfig, AdminFailed, ConfigResource, NewTopic, Producer, ProducerConfig
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig

pytestmark = pytest.mark.interop

STORE = "listener.name.ssl.ssl.keystore"
RENEWED_S_MAX = 30  # a broker looks each second


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@pytest.fixture
def first(authority: Authority) -> Certificate:
    return authority.issue("first", hosts=("localhost", "127.0.0.1"))


@pytest.fixture
async def broker(first: Certificate) -> AsyncIterator[Broker]:
    settings = {"node.id": "0", "listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": str(first.keystore)}
    async with Broker(BrokerConfig(settings), memory=True) as running:
        yield running


def port_of(broker: Broker) -> int:
    port: int = broker.listener._servers[0].sockets[0].getsockname()[1]
    return port


def client(broker: Broker, authority: Authority) -> dict[str, str]:
    ca = str(authority.certificate)
    address = f"127.0.0.1:{port_of(broker)}"
    return {"bootstrap.servers": address, "security.protocol": "SSL", "ssl.truststore.location": ca}


async def served(broker: Broker, authority: Authority) -> bytes:
    """The certificate of a new connection."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    _, writer = await asyncio.open_connection("127.0.0.1", port_of(broker), ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


def der(certificate: Certificate) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.certificate.read_text())


async def alter(broker: Broker, authority: Authority, **store: str | None) -> None:
    changes = {f"{STORE}.{name}": value for name, value in store.items()}
    async with Admin(AdminConfig.from_properties(client(broker, authority))) as admin:
        await admin.alter_configs({ConfigResource.broker(0): changes})


async def until_served(broker: Broker, authority: Authority, expected: Certificate) -> None:
    async with asyncio.timeout(RENEWED_S_MAX):
        while await served(broker, authority) != der(expected):
            await asyncio.sleep(0.05)


async def test_new_stores_count_for_the_next_connection(
    broker: Broker, authority: Authority, first: Certificate
) -> None:
    """PEM, then PKCS12, then back; a producer that was connected before goes on."""
    second, third = (authority.issue(name, hosts=("localhost", "127.0.0.1")) for name in ("second", "third"))
    topic = unique("renewed")
    async with Admin(AdminConfig.from_properties(client(broker, authority))) as admin:
        await admin.create_topics([NewTopic(topic, 1)])
    async with Producer(ProducerConfig.from_properties(client(broker, authority))) as producer:
        await (await producer.send(topic, b"before"))
        connected = broker.listener.connections
        await alter(broker, authority, location=str(second.keystore))
        await until_served(broker, authority, second)
        await alter(broker, authority, location=str(pkcs12(third)), password=KEY_PASSWORD)
        await until_served(broker, authority, third)
        await alter(broker, authority, location=None, password=None)
        await until_served(broker, authority, first)
        assert connected is broker.listener.connections
        assert (await (await producer.send(topic, b"after"))).offset == 1


async def test_a_store_that_cannot_be_used_is_refused(
    broker: Broker, authority: Authority, first: Certificate, tmp_path: Path
) -> None:
    """As by Kafka: INVALID_REQUEST, and nothing changes. The message has no secret."""
    broken = tmp_path / "broken.pem"
    broken.write_text("nonsense")
    encrypted = pkcs12(first, "planted-other")
    stores: list[tuple[dict[str, str], str]] = [
        ({"location": "/nowhere"}, "cannot be read"),
        ({"location": str(broken)}, "neither PEM nor PKCS12"),
        ({"location": str(encrypted), "password": KEY_PASSWORD}, "password"),
    ]
    for store, reason in stores:
        with pytest.raises(AdminFailed, match=f"(?s)INVALID_REQUEST.*{reason}") as refused:
            await alter(broker, authority, **store)
        assert "planted" not in str(refused.value)
    assert not broker.config.dynamic
    assert await served(broker, authority) == der(first)
