"""The SASL sessions of a broker's listeners: mechanisms and users as the configuration has them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import (
    JAAS,
    KEYS_URL,
    PREFIX,
    REAUTH,
    UNSECURED_VALIDATOR,
    VALIDATOR,
    ListenerSecurity,
)
from rota.coordinator.security.login_modules import OAUTHBEARER, login_module, tls_for_tokens, token_options
from rota.coordinator.security.sasl.exchange import Exchange
from rota.coordinator.security.sasl.plain import NAME as PLAIN
from rota.coordinator.security.sasl.plain import PlainExchange, users_of
from rota.coordinator.security.sasl.scram import Lookup, ScramExchange
from rota.coordinator.security.sasl.session import SaslSession
from rota.protocol.scram import MECHANISMS

if TYPE_CHECKING:
    from rota.coordinator.security.oauth.access_token import Validator
    from rota.coordinator.security.oauth.key_set import KeySet

NONCE_BYTES: Final = 24


class Authentication:
    """`find_credential(user, mechanism)` returns a SCRAM credential, a made-up one for an unknown user."""

    def __init__(
        self, config: BrokerConfig, find_credential: Lookup, now_ms: Callable[[], int], wall_ms: Callable[[], int]
    ) -> None:
        self._config, self._find_credential = config, find_credential
        self._now_ms, self._wall_ms = now_ms, wall_ms
        self._validators: dict[str, Validator] = {}  # of OAUTHBEARER, by listener
        self._key_sets: dict[tuple[str, str], KeySet] = {}  # by URL and JAAS text

    async def first_keys(self) -> None:
        """Wait, for a bounded time, until the keys for OAUTHBEARER have been read."""
        for keys in self._key_sets.values():
            await keys.first_read()

    def close(self) -> None:
        """Read no more keys."""
        for keys in self._key_sets.values():
            keys.close()

    def session(self, listener: str) -> SaslSession:
        """Return the session of a new connection of a listener. Raises ConfigRefused."""
        security = self._config.security[listener]
        exchanges = {mechanism: self._exchange(mechanism, security) for mechanism in security.mechanisms}
        lifetimes_ms = {mechanism: int(security.text(mechanism, REAUTH) or 0) for mechanism in security.mechanisms}
        return SaslSession(exchanges, lifetimes_ms)

    def _exchange(self, mechanism: str, security: ListenerSecurity) -> Callable[[], Exchange]:
        if mechanism == PLAIN:
            return partial(PlainExchange, plain_users(security.listener, security.jaas[PLAIN]))
        if mechanism == OAUTHBEARER:
            from rota.coordinator.security.sasl.oauthbearer import OauthbearerExchange

            return partial(OauthbearerExchange, self._validator(security), self._wall_ms)
        return partial(ScramExchange, MECHANISMS[mechanism], self._find_credential, _new_nonce)

    def _validator(self, security: ListenerSecurity) -> Validator:
        """Return what decides about the tokens of a listener. Raises ConfigRefused."""
        if security.listener not in self._validators:
            is_unsecured = security.text(OAUTHBEARER, VALIDATOR).rpartition(".")[2] == UNSECURED_VALIDATOR
            make = self._unsecured_validator if is_unsecured else self._signed_validator
            self._validators[security.listener] = make(security)
        return self._validators[security.listener]

    def _unsecured_validator(self, security: ListenerSecurity) -> Validator:
        from rota.coordinator.security.oauth.access_token import UnsecuredValidator, unsecured_claims

        try:
            return UnsecuredValidator(unsecured_claims(token_options(security)), self._wall_ms)
        except ValueError:
            name = security.jaas_name(OAUTHBEARER)
            reason = "unsecuredValidatorAllowableClockSkewMs has to be a number of ms that is not negative"
            raise ConfigRefused(name, f"Invalid value for configuration {name}: {reason}") from None

    def _signed_validator(self, security: ListenerSecurity) -> Validator:
        try:
            from rota.coordinator.security.oauth.signed_token import SignedValidator
        except ImportError as missing:
            reason = f"{KEYS_URL} needs a package that is not installed: {missing.name}; pip install 'rota[oauth]'"
            raise ConfigRefused(KEYS_URL, reason) from missing
        from rota.coordinator.security.oauth.access_token import Claims

        text = partial(security.text, OAUTHBEARER)
        claims = Claims(
            principal=text("sasl.oauthbearer.sub.claim.name"),
            scope=text("sasl.oauthbearer.scope.claim.name"),
            skew_ms=int(text("sasl.oauthbearer.clock.skew.seconds")) * 1000,
            requires_issue_time=True,
        )
        audiences = [each.strip() for each in text("sasl.oauthbearer.expected.audience").split(",") if each.strip()]
        issuer = text("sasl.oauthbearer.expected.issuer")
        return SignedValidator(self._keys(security), claims, self._wall_ms, audiences=audiences, issuer=issuer)

    def _keys(self, security: ListenerSecurity) -> KeySet:
        """Return the key set of a listener, which is read from now on. Raises ConfigRefused for a file without keys."""
        from rota.coordinator.security.oauth.key_set import Intervals, KeySet, KeysUnavailable, parse_keys, read_file

        url = security.text(OAUTHBEARER, KEYS_URL)
        shared = url, security.jaas.get(OAUTHBEARER, "")
        if shared in self._key_sets:
            return self._key_sets[shared]
        if url.startswith("file:"):
            try:
                parse_keys(read_file(url))
            except KeysUnavailable as why:
                raise ConfigRefused(KEYS_URL, f"Invalid value for configuration {KEYS_URL}: {url}: {why}") from None
        names = "refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms"
        times = (int(security.text(OAUTHBEARER, f"sasl.oauthbearer.jwks.endpoint.{name}")) for name in names)
        self._key_sets[shared] = keys = KeySet(url, Intervals(*times), self._now_ms, tls_for_tokens(security))
        keys.begin()
        return keys


@lru_cache(maxsize=64)
def plain_users(listener: str, jaas: str) -> dict[str, str]:
    """Return the passwords by user name in a JAAS text. Raises ConfigRefused."""
    name = f"{PREFIX}{listener.lower()}.plain.{JAAS}"
    return users_of(login_module(name, jaas, "PlainLoginModule").options)


def _new_nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)
