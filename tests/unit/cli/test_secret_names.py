from __future__ import annotations

import pytest

from rota.cli.secret_names import is_secret


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


@pytest.mark.parametrize("name", ["bootstrap.servers", "group.id", "ssl.keystore.location", "key.serializer"])
def test_other_settings_are_shown(name: str) -> None:
    assert not is_secret(name)
