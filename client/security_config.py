"""The security settings of all clients, by Kafka's names, and what they become: a `Security` for connections.

Laws
    Settings that do not fit together are refused when the configuration is made, files and passwords when the client
    starts: ConfigError, by the name of the setting.
    A secret is in no repr, no log and no error text.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rota.client.checks import one_of, refused, setting
from rota.client.errors import ConfigError
from rota.client.oauth import ClientCredentials
from rota.transport.errors import SettingRefused
from rota.transport.sasl.jaas import InvalidJaas, LoginModule, parse_jaas
from rota.transport.sasl.login import MECHANISMS, OAUTHBEARER, Login, PasswordLogin, TokenLogin
from rota.transport.sasl.tokens import TokenCache
from rota.transport.security import PROTOCOLS, Security
from rota.transport.tls import PROTOCOLS as TLS_VERSIONS
from rota.transport.tls import TlsSettings, client_context

_PROTOCOLS_NOTE: Final = ", ".join(PROTOCOLS)
_STORE: Final = "PEM or PKCS12; None: as its content says"
_MODULES: Final = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": (OAUTHBEARER,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    """The settings of TLS and SASL. A setting that is None is not set."""

    security_protocol: str = setting(_PROTOCOLS_NOTE, "PLAINTEXT", one_of(*PROTOCOLS))
    ssl_context: Any = setting("an ssl.SSLContext instead of the other ssl_ settings (Rota's name)", None)
    ssl_truststore_location: str | None = setting("a file: the certificates that are trusted; None: the system's", None)
    ssl_truststore_type: str | None = setting(_STORE, None)
    ssl_truststore_password: str | None = setting("of a PKCS12 truststore", None, is_secret=True)
    ssl_truststore_certificates: str | None = setting("trusted certificates in PEM, as text", None)
    ssl_keystore_location: str | None = setting("a file: the client's key and certificate chain (mutual TLS)", None)
    ssl_keystore_type: str | None = setting(_STORE, None)
    ssl_keystore_password: str | None = setting("of a PKCS12 keystore", None, is_secret=True)
    ssl_keystore_key: str | None = setting("the client's key in PEM, as text", None, is_secret=True)
    ssl_keystore_certificate_chain: str | None = setting("the client's certificate chain in PEM, as text", None)
    ssl_key_password: str | None = setting("of an encrypted key", None, is_secret=True)
    ssl_certificate_location: str | None = setting("a file: the client's certificate chain (librdkafka's name)", None)
    ssl_key_location: str | None = setting("a file: the client's key (librdkafka's name)", None)
    ssl_endpoint_identification_algorithm: str = setting(
        "https: the certificate must be for the broker's host name; empty: any name", "https", one_of("https", "")
    )
    ssl_enabled_protocols: tuple[str, ...] = setting("the versions of TLS", tuple(TLS_VERSIONS))
    ssl_cipher_suites: tuple[str, ...] = setting("cipher suites, by Java's or OpenSSL's names; empty: OpenSSL's", ())
    sasl_mechanism: str | None = setting(f"{', '.join(MECHANISMS)}; None: as sasl_jaas_config says", None)
    sasl_username: str | None = setting("the user, for PLAIN and SCRAM (librdkafka's name)", None)
    sasl_password: str | None = setting("the password, for PLAIN and SCRAM (librdkafka's name)", None, is_secret=True)
    sasl_jaas_config: str | None = setting("the credentials, as a login module of Java", None, is_secret=True)
    sasl_oauth_token_provider: Any = setting(
        "for OAUTHBEARER: an async function that returns a token (a str, or a Token), or an object with such a method "
        "`token` (aiokafka's name)",
        None,
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        "for OAUTHBEARER: where client credentials are exchanged for a token; needs `rota[oauth]`", None
    )
    https_ca_location: str | None = setting(
        "a file: the certificates that are trusted there; None: the system's (librdkafka's name)", None
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = setting("the client's id there", None)
    sasl_oauthbearer_client_credentials_client_secret: str | None = setting("its secret", None, is_secret=True)
    sasl_oauthbearer_scope: str | None = setting("the scope of the token", None)

    def check_security(self) -> None:
        """Raises ConfigError for settings that do not fit together."""
        if self.ssl_context is not None and not isinstance(self.ssl_context, ssl.SSLContext):
            raise refused("ssl_context", type(self.ssl_context).__name__, "an ssl.SSLContext")
        if self.sasl_mechanism is not None and self.sasl_mechanism not in MECHANISMS:
            raise refused("sasl_mechanism", self.sasl_mechanism, f"one of {', '.join(MECHANISMS)}")
        if self.security_protocol.startswith("SASL_"):
            _login(self)


def security_of(config: SecurityConfig) -> Security:
    """Return the security of the client's connections; reads the files. Raises ConfigError."""
    login = _login(config) if config.security_protocol.startswith("SASL_") else None
    return Security(_tls_context(config) if config.security_protocol.endswith("SSL") else None, login)


def _tls_context(config: SecurityConfig) -> ssl.SSLContext:
    if config.ssl_context is not None:
        assert isinstance(config.ssl_context, ssl.SSLContext)
        return config.ssl_context
    try:
        return client_context(
            TlsSettings(
                truststore_location=config.ssl_truststore_location,
                truststore_type=config.ssl_truststore_type,
                truststore_password=config.ssl_truststore_password,
                truststore_certificates=config.ssl_truststore_certificates,
                keystore_location=config.ssl_keystore_location,
                keystore_type=config.ssl_keystore_type,
                keystore_password=config.ssl_keystore_password,
                keystore_key=config.ssl_keystore_key,
                keystore_certificate_chain=config.ssl_keystore_certificate_chain,
                key_password=config.ssl_key_password,
                certificate_location=config.ssl_certificate_location,
                key_location=config.ssl_key_location,
                endpoint_identification_algorithm=config.ssl_endpoint_identification_algorithm,
                enabled_protocols=config.ssl_enabled_protocols,
                cipher_suites=config.ssl_cipher_suites,
            )
        )
    except SettingRefused as why:
        raise ConfigError(str(why)) from None


# ---- credentials


def _login(config: SecurityConfig) -> Login:
    module = _module(config)
    mechanism = config.sasl_mechanism
    if mechanism is None:
        if module is None:
            raise refused("sasl_mechanism", None, f"one of {', '.join(MECHANISMS)} with {config.security_protocol}")
        mechanism = _MODULES[module.name][0] if len(_MODULES[module.name]) == 1 else None
        if mechanism is None:
            raise refused("sasl_mechanism", None, f"one of {', '.join(_MODULES[module.name])} with {module.name}")
    if module is not None and mechanism not in _MODULES[module.name]:
        raise refused("sasl_mechanism", mechanism, f"{' or '.join(_MODULES[module.name])} with {module.name}")
    options = module.options if module is not None else {}
    if mechanism == OAUTHBEARER:
        return TokenLogin(TokenCache(_token_provider(config, options)))
    return _password_login(config, mechanism, options)


def _module(config: SecurityConfig) -> LoginModule | None:
    if config.sasl_jaas_config is None:
        return None
    try:
        module = parse_jaas(config.sasl_jaas_config)
    except InvalidJaas as why:
        raise ConfigError(f"sasl_jaas_config (sasl.jaas.config) cannot be read: {why}") from None
    if module.name not in _MODULES:
        known = ", ".join(_MODULES)
        raise ConfigError(f"sasl_jaas_config (sasl.jaas.config) has a login module other than {known}")
    return module


def _password_login(config: SecurityConfig, mechanism: str, options: Mapping[str, str]) -> PasswordLogin:
    username = config.sasl_username if config.sasl_username is not None else options.get("username")
    password = config.sasl_password if config.sasl_password is not None else options.get("password")
    if not username:
        raise refused("sasl_username", username, f"the user, with {mechanism}; or set sasl_jaas_config")
    if password is None:
        raise ConfigError(f"sasl_password (sasl.password) is not set; {mechanism} needs it, or sasl_jaas_config")
    return PasswordLogin(mechanism, username, password)


def _token_provider(config: SecurityConfig, options: Mapping[str, str]) -> Any:
    given = config.sasl_oauth_token_provider
    if given is not None:
        if not callable(getattr(given, "token", given)):
            raise refused("sasl_oauth_token_provider", type(given).__name__, "an async function or has one, `token`")
        return given
    url = config.sasl_oauthbearer_token_endpoint_url
    client = config.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = config.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret")
    if not (url and client and secret):
        raise ConfigError(
            "OAUTHBEARER needs sasl_oauth_token_provider, or sasl_oauthbearer_token_endpoint_url with "
            "sasl_oauthbearer_client_credentials_client_id and sasl_oauthbearer_client_credentials_client_secret "
            "(clientId and clientSecret in sasl_jaas_config)"
        )
    try:
        context = client_context(TlsSettings(truststore_location=config.https_ca_location))
        return ClientCredentials(url, client, secret, config.sasl_oauthbearer_scope or options.get("scope"), context)
    except SettingRefused as why:
        raise ConfigError(
            str(why).replace("ssl_truststore_location (ssl.truststore", "https_ca_location (https.ca")
        ) from None
    except ValueError as why:
        raise ConfigError(str(why)) from None
