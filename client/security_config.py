"""The security settings of all clients, by Kafka's names, and the credentials in them. Pure.

Laws
    Settings that do not fit together are refused when the configuration is made, files and passwords when the client
    starts (network/security.py): ConfigError, by the name of the setting.
    A secret is in no repr, no log and no error text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Final

from rota.client.checks import one_of, refused, setting
from rota.client.errors import ConfigError
from rota.protocol.dataclass import dataclass
from rota.transport.sasl.jaas import InvalidJaas, LoginModule, parse_jaas
from rota.transport.sasl.oauthbearer import check_extensions

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_EXTENSION: Final = "extension_"
_CHECKS: Final = ("https", "none", "")
_STORE: Final = "PEM or PKCS12; None: as its content says"
_MODULES: Final = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": (OAUTHBEARER,),
}


def _protocol(value: Any) -> str | None:
    """Check a security protocol. librdkafka's lower case is accepted."""
    return None if isinstance(value, str) and value.upper() in PROTOCOLS else f"one of {', '.join(PROTOCOLS)}"


def _identification(value: Any) -> str | None:
    """Check how a host is identified. Java's upper case is accepted."""
    return one_of(*_CHECKS)(value.lower() if isinstance(value, str) else value)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client authenticates with: `username` and `password` for PLAIN and SCRAM; for OAUTHBEARER a
    `token_provider`, or `username` and `password` of the client at `token_endpoint`. `is_token`: they are those of a
    delegation token. `extensions`: of OAUTHBEARER, for tokens without their own."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token_provider: Any = None
    token_endpoint: str | None = None
    scope: str | None = None
    is_token: bool = False
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    """The settings of TLS and SASL. A setting that is None is not set."""

    security_protocol: str = setting("PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", "PLAINTEXT", _protocol)
    ssl_context: Any = setting(  # it makes a field
        "an ssl.SSLContext instead of the other ssl_ settings (Rota's name)", None
    )
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
        "https: the certificate must be for the broker's host name; empty or none: any", "https", _identification
    )
    ssl_enabled_protocols: tuple[str, ...] = setting("the versions of TLS", TLS_VERSIONS)
    ssl_cipher_suites: tuple[str, ...] = setting("cipher suites, by Java's or OpenSSL's names; empty: OpenSSL's", ())
    sasl_mechanism: str | None = setting(f"{', '.join(MECHANISMS)}; None: as sasl_jaas_config says", None)
    sasl_username: str | None = setting("the user, for PLAIN and SCRAM (librdkafka's name)", None)
    sasl_password: str | None = setting("the password of this user (librdkafka's name)", None, is_secret=True)
    sasl_jaas_config: str | None = setting("the credentials, as a login module of Java", None, is_secret=True)
    sasl_oauth_token_provider: Any = setting(  # it makes a field
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
        if self.sasl_mechanism is not None and self.sasl_mechanism not in MECHANISMS:
            raise refused("sasl_mechanism", self.sasl_mechanism, f"one of {', '.join(MECHANISMS)}")
        object.__setattr__(self, "security_protocol", self.security_protocol.upper())
        identification = self.ssl_endpoint_identification_algorithm.lower()
        object.__setattr__(self, "ssl_endpoint_identification_algorithm", identification)
        if self.has_sasl:
            credentials(self)
        if self.ssl_context is not None:
            self._check_context()

    def _check_context(self) -> None:
        """A context stands for all settings of TLS: others would be without effect, and so is it without TLS."""
        if not self.has_tls:
            raise ConfigError(
                f"ssl_context is given, but security_protocol is {self.security_protocol}, which is without TLS: "
                "set it to SSL or SASL_SSL"
            )
        tls = [item for item in fields(self) if item.name.startswith("ssl_") and item.name != "ssl_context"]
        also = [item.name for item in tls if getattr(self, item.name) != item.default]
        if also:
            raise ConfigError(f"ssl_context is given instead of the other ssl_ settings; leave out {', '.join(also)}")

    @property
    def has_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    @property
    def has_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")


def credentials(config: SecurityConfig) -> Credentials:
    """Return the credentials for SASL. Raises ConfigError."""
    module = _module(config)
    mechanism = config.sasl_mechanism or _mechanism_of(module)
    if mechanism is None or (module is not None and mechanism not in _MODULES[module.name]):
        valid, reason = (
            (MECHANISMS, config.security_protocol) if module is None else (_MODULES[module.name], module.name)
        )
        raise refused("sasl_mechanism", mechanism, f"{' or '.join(valid)} with {reason}")
    options = module.options if module is not None else {}
    if mechanism == OAUTHBEARER:
        return _token_credentials(config, options)
    return _password_credentials(config, mechanism, options)


def _mechanism_of(module: LoginModule | None) -> str | None:
    """The mechanism of a login module that has only one."""
    names = _MODULES[module.name] if module is not None else ()
    return names[0] if len(names) == 1 else None


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


def _password_credentials(config: SecurityConfig, mechanism: str, options: Mapping[str, str]) -> Credentials:
    username = config.sasl_username if config.sasl_username is not None else options.get("username")
    password = config.sasl_password if config.sasl_password is not None else options.get("password")
    if not username:
        raise refused("sasl_username", username, f"the user, with {mechanism}; or set sasl_jaas_config")
    if password is None:
        raise ConfigError(f"sasl_password (sasl.password) is not set; {mechanism} needs it, or sasl_jaas_config")
    for name, text in (("sasl_username", username), ("sasl_password", password)):
        if "\0" in text or not _is_unicode(text):
            raise ConfigError(f"{name} ({name.replace('_', '.')}) has a character that cannot be sent")
    is_token = mechanism != "PLAIN" and options.get("tokenauth", "").lower() == "true"
    return Credentials(mechanism, username, password, is_token=is_token)


def _is_unicode(text: str) -> bool:
    """Whether it can be written in UTF-8. Bytes of the environment that are not are half characters in a str."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _token_credentials(config: SecurityConfig, options: Mapping[str, str]) -> Credentials:
    given = config.sasl_oauth_token_provider
    if given is not None:
        if not callable(getattr(given, "token", given)):
            raise refused("sasl_oauth_token_provider", type(given).__name__, "an async function or has one, `token`")
        return Credentials(OAUTHBEARER, token_provider=given, extensions=_extensions(options))
    endpoint = config.sasl_oauthbearer_token_endpoint_url
    client = config.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = config.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret")
    if not (endpoint and client and secret):
        raise ConfigError(
            "OAUTHBEARER needs sasl_oauth_token_provider, or sasl_oauthbearer_token_endpoint_url with "
            "sasl_oauthbearer_client_credentials_client_id and sasl_oauthbearer_client_credentials_client_secret "
            "(clientId and clientSecret in sasl_jaas_config)"
        )
    scope = config.sasl_oauthbearer_scope or options.get("scope")
    extensions = _extensions(options)
    return Credentials(OAUTHBEARER, client, secret, token_endpoint=endpoint, scope=scope, extensions=extensions)


def _extensions(options: Mapping[str, str]) -> dict[str, str]:
    """The SASL extensions of a login module: its options `extension_NAME`. Raises ConfigError."""
    extensions = {name.removeprefix(_EXTENSION): options[name] for name in options if name.startswith(_EXTENSION)}
    try:
        check_extensions(extensions)
    except ValueError as why:
        raise ConfigError(f"sasl_jaas_config (sasl.jaas.config): {why}") from None
    return extensions
