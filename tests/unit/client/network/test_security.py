"""From settings to the security of connections."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.unit.certificates import Certificates

from rota.client.config import ClientConfig
from rota.client.errors import ConfigError
from rota.client.network.security import security_of
from rota.transport.sasl.login import PasswordLogin, TokenLogin

SASL: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password": "p",
}  # fmt: skip
OAUTH: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_token_endpoint_url": "https://idp.example/token",
    "sasl_oauthbearer_client_credentials_client_id": "i",
    "sasl_oauthbearer_client_credentials_client_secret": "planted",
}


def config(**settings: Any) -> ClientConfig:
    return ClientConfig(bootstrap_servers="127.0.0.1:9092", **settings)


def test_plain_text_needs_nothing() -> None:
    security = security_of(config())
    assert (security.tls, security.login) == (None, None)


def test_security_protocol_enables_tls_and_sasl(certificates: Certificates) -> None:
    trusted = {"ssl_truststore_location": str(certificates.ca)}
    assert security_of(config(security_protocol="SSL", **trusted)).login is None
    assert security_of(config(security_protocol="SSL", **trusted)).tls is not None
    assert security_of(config(**SASL)).tls is None
    both = security_of(config(**(SASL | trusted | {"security_protocol": "SASL_SSL"})))
    assert both.tls is not None
    assert isinstance(both.login, PasswordLogin)


def test_a_context_of_the_caller_is_used_as_it_is() -> None:
    own = ssl.create_default_context()
    assert security_of(config(security_protocol="SSL", ssl_context=own)).tls is own
    with pytest.raises(ConfigError, match=r"ssl_context .*an ssl\.SSLContext"):
        security_of(config(security_protocol="SSL", ssl_context="context.pem"))


def test_every_setting_of_tls_arrives(certificates: Certificates) -> None:
    settings = {"ssl_truststore_location": str(certificates.ca), "ssl_endpoint_identification_algorithm": ""}
    tls = security_of(config(security_protocol="SSL", ssl_enabled_protocols=("TLSv1.3",), **settings)).tls
    assert tls is not None
    assert not tls.check_hostname
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.minimum_version is ssl.TLSVersion.TLSv1_3


def test_a_missing_file_is_refused_with_the_name_of_the_setting(tmp_path: Path) -> None:
    missing = str(tmp_path / "ca.pem")
    with pytest.raises(ConfigError, match=r"ssl_truststore_location \(ssl.truststore.location\) cannot be read"):
        security_of(config(security_protocol="SSL", ssl_truststore_location=missing))
    with pytest.raises(ConfigError, match=r"https_ca_location \(https.ca.location\) cannot be read"):
        security_of(config(**OAUTH, https_ca_location=missing))


def test_tokens_are_from_a_provider_or_client_credentials() -> None:
    async def provider() -> str:
        return "t"

    own = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    assert isinstance(security_of(config(**own, sasl_oauth_token_provider=provider)).login, TokenLogin)
    assert isinstance(security_of(config(**OAUTH)).login, TokenLogin)
    with pytest.raises(ConfigError, match="an http or https URL"):
        security_of(config(**(OAUTH | {"sasl_oauthbearer_token_endpoint_url": "idp"})))


async def test_options_of_login_modules_reach_the_broker() -> None:
    async def token() -> str:
        return "t"

    delegated = config(
        security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-256",
        sasl_jaas_config='ScramLoginModule required username="id" password="hmac" tokenauth="true";',
    )  # fmt: skip
    extended = config(
        security_protocol="SASL_SSL", sasl_oauth_token_provider=token,
        sasl_jaas_config='OAuthBearerLoginModule required extension_logicalCluster="lkc-1";',
    )  # fmt: skip
    for settings, sent in ((delegated, b",tokenauth=true"), (extended, b"\x01logicalCluster=lkc-1\x01")):
        login = security_of(settings).login
        assert login is not None
        assert sent in (await login.conversation()).first()
