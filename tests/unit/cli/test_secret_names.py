from __future__ import annotations

import pytest

from rota.cli.secret_names import is_secret
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.other_properties import others


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl_keystore_key",
        "ssl.key.pem",
        "sasl.jaas.config",
        "listener.name.sasl.scram-sha-256.sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "CREDENTIAL",
    ],
)
def test_secrets_are_known_by_their_names(name: str) -> None:
    assert is_secret(name)


def test_every_secret_of_a_broker_is_known() -> None:
    """CL14. Certificates are sensitive for Kafka, and secret for nobody."""
    sensitive = {each.name for each in (*USED.values(), *others().values()) if each.is_sensitive}
    assert len(sensitive) > 10
    hidden = {name for name in sensitive if is_secret(name)}
    assert sensitive - hidden == {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}


@pytest.mark.parametrize("name", ["bootstrap.servers", "group.id", "ssl.keystore.location", "key.serializer"])
def test_other_settings_are_shown(name: str) -> None:
    assert not is_secret(name)
