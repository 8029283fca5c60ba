"""Settings of TLS and SASL: defaults, names of other clients, what fits together, and that secrets are never shown."""

from __future__ import annotations

import dataclasses
import ssl
from typing import Any

import pytest

from rota.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from rota.client.errors import ConfigError
from rota.client.security_config import Credentials, SecurityConfig, credentials

B = "127.0.0.1:9092"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRETS = {field.name for field in dataclasses.fields(SecurityConfig) if not field.repr}


def config(**settings: Any) -> ClientConfig:
    return ClientConfig.from_properties(
        {"bootstrap.servers": B} | {name.replace("_", "."): value for name, value in settings.items()}
    )


def test_the_defaults_are_kafkas() -> None:
    made = ClientConfig(bootstrap_servers=B)
    assert made.security_protocol == "PLAINTEXT"
    assert made.ssl_endpoint_identification_algorithm == "https"
    assert made.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert (made.has_tls, made.has_sasl) == (False, False)


@pytest.mark.parametrize("kind", [AdminConfig, ConsumerConfig, ProducerConfig])
def test_every_client_has_them(kind: type[ClientConfig]) -> None:
    made = kind(
        bootstrap_servers=B, security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_username="a", sasl_password="b"
    )
    assert (made.has_tls, made.has_sasl) == (True, True)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "a", "sasl_password": "b"},
            Credentials("SCRAM-SHA-256", "a", "b"),
        ),
        (
            {"sasl_mechanisms": "PLAIN", "sasl_plain_username": "a", "sasl_plain_password": "b"},
            Credentials("PLAIN", "a", "b"),
        ),
        ({"sasl_jaas_config": f'{PLAIN} required username="a" password="b";'}, Credentials("PLAIN", "a", "b")),
        (
            {
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_jaas_config": f'{SCRAM} required username="a" password="b" tokenauth="false";',
            },
            Credentials("SCRAM-SHA-512", "a", "b"),
        ),
        (
            {
                "sasl_jaas_config": f'{OAUTH} required clientId="i" clientSecret="s" scope="x";',
                "sasl_oauthbearer_token_endpoint_url": "https://idp/token",
            },
            Credentials("OAUTHBEARER", "i", "s", token_endpoint="https://idp/token", scope="x"),
        ),
        (
            {
                "sasl_jaas_config": f'{OAUTH} required clientId="i" clientSecret="s" extension_logicalCluster="lkc-1";',
                "sasl_oauthbearer_token_endpoint_url": "https://idp/token",
            },
            Credentials(
                "OAUTHBEARER", "i", "s", token_endpoint="https://idp/token", extensions={"logicalCluster": "lkc-1"}
            ),
        ),
        (
            {
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_jaas_config": f'{SCRAM} required username="id" password="hmac" tokenauth="true";',
            },
            Credentials("SCRAM-SHA-256", "id", "hmac", is_token=True),
        ),
        (
            {
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_endpoint_url": "https://idp/token",
                "sasl_oauthbearer_client_id": "i",
                "sasl_oauthbearer_client_secret": "s",
            },
            Credentials("OAUTHBEARER", "i", "s", token_endpoint="https://idp/token"),
        ),
    ],
)
def test_credentials_by_each_clients_names(settings: dict[str, Any], expected: Credentials) -> None:
    assert credentials(config(security_protocol="sasl_ssl", **settings)) == expected


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("ssl.ca.location", "ssl_truststore_location"),
        ("ssl.ca.pem", "ssl_truststore_certificates"),
        ("ssl.key.pem", "ssl_keystore_key"),
        ("ssl.certificate.pem", "ssl_keystore_certificate_chain"),
        ("ssl.certificate.location", "ssl_certificate_location"),
        ("ssl.key.location", "ssl_key_location"),
    ],
)
def test_the_names_of_librdkafka(name: str, ours: str) -> None:
    made = ClientConfig.from_properties({"bootstrap.servers": B, "security.protocol": "ssl", name: "x"})
    assert getattr(made, ours) == "x"
    assert made.security_protocol == "SSL"


def test_a_setting_by_two_names_is_refused() -> None:
    for first, second in (("sasl.mechanism", "sasl.mechanisms"), ("sasl.mechanisms", "sasl.mechanism")):
        with pytest.raises(ConfigError, match=r"sasl\.mechanisms and sasl\.mechanism are one setting: give it once"):
            ClientConfig.from_properties({"bootstrap.servers": B, first: "PLAIN", second: "SCRAM-SHA-256"})


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({}, r"sasl_mechanism .*it must be PLAIN or .* with SASL_SSL"),
        ({"sasl_mechanism": "GSSAPI"}, "'GSSAPI'; it must be one of PLAIN"),
        ({"sasl_mechanism": "PLAIN"}, "sasl_username"),
        ({"sasl_mechanism": "PLAIN", "sasl_username": "a"}, "sasl_password .* is not set"),
        ({"sasl_jaas_config": f'{SCRAM} required username="a" password="planted";'}, "SCRAM-SHA-256 or SCRAM-SHA-512"),
        (
            {"sasl_mechanism": "PLAIN", "sasl_jaas_config": f'{SCRAM} required username="a" password="planted";'},
            "'PLAIN'; it must be SCRAM-SHA-256 or SCRAM-SHA-512 with ScramLoginModule",
        ),
        ({"sasl_jaas_config": 'planted required password="planted";'}, "a login module other than PlainLoginModule"),
        ({"sasl_jaas_config": f'{PLAIN} required password="planted"'}, "cannot be read: expected a semicolon"),
        ({"sasl_mechanism": "PLAIN", "sasl_username": "a\0b", "sasl_password": "planted"}, "sasl_username .*be sent"),
        (
            {"sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": "planted\udc80"},
            "sasl_password .*be sent",
        ),
        ({"sasl_mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs sasl_oauth_token_provider, or"),
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": 3}, "an async function"),
        (
            {
                "sasl_jaas_config": f'{OAUTH} required clientId="i" clientSecret="planted" extension_auth="x";',
                "sasl_oauthbearer_token_endpoint_url": "https://idp/token",
            },
            "the SASL extension 'auth' cannot be sent",
        ),
    ],
)
def test_credentials_that_are_not_whole_are_refused_at_once(settings: dict[str, Any], answer: str) -> None:
    with pytest.raises(ConfigError, match=answer) as refused:
        ClientConfig(bootstrap_servers=B, security_protocol="SASL_SSL", **settings)
    assert "planted" not in str(refused.value)


def test_without_sasl_its_settings_are_not_needed() -> None:
    assert not config(security_protocol="SSL", sasl_mechanism="PLAIN").has_sasl


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_secret_is_in_no_repr_and_no_error(name: str) -> None:
    settings: dict[str, Any] = {"bootstrap_servers": B, name: "planted-secret"}
    assert "planted" not in repr(ClientConfig(**settings))
    for wrong in (3, ["planted-secret"]):
        with pytest.raises(ConfigError, match=rf"{name} .*\[hidden\]") as refused:
            ClientConfig(**(settings | {name: wrong}))
        assert "planted" not in str(refused.value)


def test_these_are_the_secrets() -> None:
    words = ("password", "secret", "jaas", "keystore_key")
    names = {field.name for field in dataclasses.fields(SecurityConfig)}
    assert {name for name in names if any(word in name for word in words)} == SECRETS
    assert "planted" not in repr(Credentials("PLAIN", "a", "planted"))


def test_a_context_that_would_be_without_effect_is_refused() -> None:
    own = ssl.create_default_context()
    with pytest.raises(ConfigError, match="security_protocol is PLAINTEXT, which is without TLS"):
        ClientConfig(bootstrap_servers=B, ssl_context=own)
    with pytest.raises(ConfigError, match="leave out ssl_truststore_location, ssl_key_password") as refused:
        ClientConfig(
            bootstrap_servers=B, security_protocol="SSL", ssl_context=own,
            ssl_truststore_location="ca.pem", ssl_key_password="planted",
        )  # fmt: skip
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize(("given", "ours"), [("HTTPS", "https"), ("https", "https"), ("None", "none"), ("", "")])
def test_the_identification_of_hosts_in_javas_upper_case(given: str, ours: str) -> None:
    made = config(ssl_endpoint_identification_algorithm=given)
    assert made.ssl_endpoint_identification_algorithm == ours
