"""Creates the `Security` of a client's connections from its settings, once: it reads files and tries passwords."""

from __future__ import annotations

import ssl

from rota.client.checks import refused
from rota.client.errors import ConfigError
from rota.client.security_config import OAUTHBEARER, SecurityConfig, credentials
from rota.transport.errors import SettingRefused
from rota.transport.sasl.client_credentials import ClientCredentials
from rota.transport.sasl.login import Login, PasswordLogin, TokenLogin
from rota.transport.sasl.tokens import TokenCache
from rota.transport.security import Security
from rota.transport.tls import TlsSettings, client_context

_SSL = "ssl_"


def security_of(config: SecurityConfig) -> Security:
    """Return the security of the client's connections. Raises ConfigError."""
    return Security(_tls_context(config) if config.has_tls else None, _login(config) if config.has_sasl else None)


def _tls_context(config: SecurityConfig) -> ssl.SSLContext:
    given = config.ssl_context
    if given is not None:
        if not isinstance(given, ssl.SSLContext):
            raise refused("ssl_context", type(given).__name__, "an ssl.SSLContext")
        return given
    settings = {name: getattr(config, _SSL + name) for name in TlsSettings.__dataclass_fields__}
    try:
        return client_context(TlsSettings(**settings))
    except SettingRefused as why:
        raise ConfigError(str(why)) from None


def _login(config: SecurityConfig) -> Login:
    found = credentials(config)
    if found.mechanism != OAUTHBEARER:
        return PasswordLogin(found.mechanism, found.username, found.password, is_token=found.is_token)
    if found.token_provider is not None:
        return TokenLogin(TokenCache(found.token_provider, extensions=found.extensions))
    assert found.token_endpoint is not None
    try:
        context = client_context(TlsSettings(truststore_location=config.https_ca_location))
        client = ClientCredentials(found.token_endpoint, found.username, found.password, found.scope, context)
    except SettingRefused as why:
        text = str(why).replace("ssl_truststore_location (ssl.truststore", "https_ca_location (https.ca")
        raise ConfigError(text) from None
    except ValueError as why:
        raise ConfigError(str(why)) from None
    return TokenLogin(TokenCache(client, extensions=found.extensions))
