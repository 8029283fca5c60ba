"""ZT1: TLS with a real ZooKeeper, by a broker's own properties."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.certificates import Certificates, certificates
from tools.zookeeper import ZooKeeperServer, missing

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata.store import Store, StoreFailed
from rota.coordinator.store_opener import store_opener

__all__ = ["certificates"]
NODES = 300  # more than one TLS record of answers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[ZooKeeperServer]:
    reason = missing()
    if reason is not None:
        pytest.skip(f"no ZooKeeper: {reason}")
    folder = tmp_path_factory.mktemp("secure")
    keystore, truststore = folder / "server.pem", folder / "ca.pem"
    keystore.write_bytes(certificates.server.keystore.read_bytes())
    truststore.write_bytes(certificates.ca.read_bytes())
    with ZooKeeperServer(folder, tls=(keystore, truststore)) as running:
        yield running


async def open_store(server: ZooKeeperServer, keystore: Path | None, ca: Path, session_ms: int) -> Store:
    """`session_ms`: the first handshake with a new JVM takes seconds where other tests run."""
    properties = {
        "zookeeper.connect": f"localhost:{server.tls_port}/rota",
        "zookeeper.session.timeout.ms": str(session_ms),
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(ca),
        **({} if keystore is None else {"zookeeper.ssl.keystore.location": str(keystore)}),
    }
    opener = store_opener(BrokerConfig(properties))
    assert opener is not None
    return await opener()


async def test_a_broker_with_a_certificate_reads_and_writes(
    server: ZooKeeperServer, certificates: Certificates
) -> None:
    store = await open_store(server, certificates.client.keystore, certificates.ca, 20_000)
    paths = [f"/{number}" for number in range(NODES)]
    await asyncio.gather(*(store.create(path, b"x" * 100) for path in paths))
    answers = await asyncio.gather(*(store.get(path) for path in paths))
    assert {data for data, _ in answers} == {b"x" * 100}
    await store.close()


async def test_no_session_begins_without_certificates_that_both_sides_trust(
    server: ZooKeeperServer, certificates: Certificates
) -> None:
    for keystore, ca in (
        (None, certificates.ca),
        (certificates.untrusted.keystore, certificates.ca),
        (certificates.client.keystore, certificates.other_ca),
    ):
        with pytest.raises(StoreFailed):
            await open_store(server, keystore, ca, 2_000)
