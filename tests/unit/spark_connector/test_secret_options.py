from __future__ import annotations

import re

import pytest

from rota.spark_connector.secret_options import is_secret, redaction_pattern


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.jaas.config",
        "kafka.ssl.keystore.key",
        "KAFKA.SSL.KEY.PASSWORD",
        "kafka.ssl.key.pem",
        "kafka.sasl.oauthbearer.client.secret",
        "kafka.ssl_keystore_key",
    ],
)
def test_secrets_are_known_by_their_names(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "kafka.ssl.keystore.location",
        "kafka.ssl.keystore.certificate.chain",
        "kafka.ssl.key.location",
        "kafka.sasl.oauthbearer.token.endpoint.url",
        "kafka.sasl.mechanism",
        "subscribe",
    ],
)
def test_other_options_are_shown(name: str) -> None:
    assert not is_secret(name)


def test_the_pattern_of_the_session_is_extended_once() -> None:
    pattern = redaction_pattern("(?i)url")
    assert redaction_pattern(pattern) == pattern
    for name in ("Url", "kafka.ssl.keystore.key", "kafka.sasl.jaas.config"):
        assert re.search(pattern, name)
    assert not re.search(pattern, "kafka.ssl.keystore.location")
