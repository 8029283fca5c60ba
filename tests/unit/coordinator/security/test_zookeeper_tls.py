"""ZT1: which properties are refused. The handshakes are in tests/contract/test_zookeeper_tls.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.certificates import Certificates, certificates

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.security.zookeeper_tls import zookeeper_tls
from rota.coordinator.store_opener import store_opener

__all__ = ["certificates"]
ENABLED = {"zookeeper.connect": "localhost:1", "zookeeper.ssl.client.enable": "true"}


def test_without_the_property_there_is_no_tls() -> None:
    assert zookeeper_tls(BrokerConfig({**ENABLED, "zookeeper.ssl.client.enable": "false"})) is None


@pytest.mark.parametrize(("algorithm", "checks"), [("HTTPS", True), ("", False)])
def test_the_host_name_is_checked_unless_that_is_switched_off(
    algorithm: str, checks: bool, certificates: Certificates
) -> None:
    given = {
        "zookeeper.ssl.endpoint.identification.algorithm": algorithm,
        "zookeeper.ssl.truststore.location": str(certificates.ca),
    }
    tls = zookeeper_tls(BrokerConfig({**ENABLED, **given}))
    assert tls is not None
    assert tls().check_hostname is checks


def test_a_file_that_cannot_be_used_is_refused_by_its_property(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("planted-nonsense")
    for name in ("keystore", "truststore"):
        given = {**ENABLED, f"zookeeper.ssl.{name}.location": str(tmp_path / "store")}
        with pytest.raises(ConfigRefused, match=rf"zookeeper\.ssl\.{name}") as refused:
            store_opener(BrokerConfig(given))
        assert "planted" not in str(refused.value)
