"""The login modules in the JAAS texts of a listener, and the options of OAUTHBEARER's, as Kafka names them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import ListenerSecurity
from rota.transport.errors import SettingRefused
from rota.transport.sasl.jaas import InvalidJaas, LoginModule, parse_jaas
from rota.transport.tls import TlsSettings, client_context

OAUTHBEARER: Final = "OAUTHBEARER"
TRUST: Final = ("truststore_location", "truststore_type", "truststore_password", "truststore_certificates")


def login_module(name: str, jaas: str, expected: str) -> LoginModule:
    """Return the login module in the JAAS text of a property. Raises ConfigRefused."""
    try:
        module = parse_jaas(jaas)
    except InvalidJaas as error:
        raise ConfigRefused(name, f"Invalid value for configuration {name}: {error}") from None
    if module.name != expected:
        raise ConfigRefused(name, f"Configuration {name} has {module.name}, where {expected} is expected")
    return module


def token_options(security: ListenerSecurity) -> Mapping[str, str]:
    """Return the options of OAUTHBEARER on a listener; none without a JAAS text. Raises ConfigRefused."""
    text = security.jaas.get(OAUTHBEARER)
    return login_module(security.jaas_name(OAUTHBEARER), text, "OAuthBearerLoginModule").options if text else {}


def tls_for_tokens(security: ListenerSecurity) -> ssl.SSLContext | None:
    """Return who is trusted to have keys and tokens over https, where the options name a trust store.

    Raises ConfigRefused.
    """
    options = token_options(security)
    given = {name: options.get(f"ssl.{name.replace('_', '.')}") for name in TRUST}
    stores: dict[str, Any] = {name: text for name, text in given.items() if text is not None}
    if not stores:
        return None
    try:
        return client_context(TlsSettings(**stores))
    except SettingRefused as refused:
        name = security.jaas_name(OAUTHBEARER)
        raise ConfigRefused(name, f"Invalid value for configuration {name}: {refused}") from None
