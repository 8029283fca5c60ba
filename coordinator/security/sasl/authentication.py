"""The SASL sessions of a broker's listeners: mechanisms and users as the configuration has them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import JAAS, PREFIX, ListenerSecurity
from rota.coordinator.security.sasl.exchange import Exchange
from rota.coordinator.security.sasl.plain import NAME as PLAIN
from rota.coordinator.security.sasl.plain import PlainExchange, users_of
from rota.coordinator.security.sasl.scram import Lookup, ScramExchange
from rota.coordinator.security.sasl.session import SaslSession
from rota.protocol.scram import MECHANISMS
from rota.transport.sasl.jaas import InvalidJaas, parse_jaas

NONCE_BYTES: Final = 24
SECRET_BYTES: Final = 32


class Authentication:
    """`find_credential(user, mechanism)` returns a SCRAM credential or None."""

    def __init__(self, config: BrokerConfig, find_credential: Lookup) -> None:
        self._config, self._find_credential = config, find_credential
        self._secret = secrets.token_bytes(SECRET_BYTES)

    def session(self, listener: str) -> SaslSession:
        """Return the session of a new connection of a listener. Raises ConfigRefused."""
        security = self._config.security[listener]
        exchanges = {mechanism: self._exchange(mechanism, security) for mechanism in security.mechanisms}
        return SaslSession(exchanges, int(security.properties.get("connections.max.reauth.ms") or 0))

    def _exchange(self, mechanism: str, security: ListenerSecurity) -> Callable[[], Exchange]:
        if mechanism == PLAIN:
            return partial(PlainExchange, plain_users(security.listener, security.jaas[PLAIN]))
        return partial(ScramExchange, MECHANISMS[mechanism], self._find_credential, _new_nonce, self._secret)


@lru_cache(maxsize=64)
def plain_users(listener: str, jaas: str) -> dict[str, str]:
    """Return the passwords by user name in a JAAS text. Raises ConfigRefused."""
    name = f"{PREFIX}{listener.lower()}.plain.{JAAS}"
    try:
        module = parse_jaas(jaas)
    except InvalidJaas as error:
        raise ConfigRefused(name, f"Invalid value for configuration {name}: {error}") from None
    if module.name != "PlainLoginModule":
        raise ConfigRefused(name, f"Configuration {name} has {module.name}, where PlainLoginModule is expected")
    return users_of(module.options)


def _new_nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)
