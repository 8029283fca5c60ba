"""How each listener is secured: its protocol, and the ssl.* and sasl.* properties that count for it. Pure.

Laws
    SC1 A property of one listener (`listener.name.NAME.PROPERTY`) overrides the broker's. A listener that cannot
        be secured as its properties say is refused; none is ever opened in plain text instead.
    IB1 Brokers reach each other by one listener, with its protocol and the mechanism between brokers; a configuration
        without this broker's own credentials is refused.
    SC7 A property of a listener that is accepted is read; one for a listener that does not exist is refused.
    SC2 A listener in plain text on an address that other hosts reach needs rota.allow.plaintext.beyond.loopback.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Final

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.config.security_properties import SECURITY
from rota.protocol.dataclass import dataclass

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PREFIX: Final = "listener.name."
MAP: Final = "listener.security.protocol.map"
JAAS: Final = "sasl.jaas.config"
BETWEEN: Final = "sasl.mechanism.inter.broker.protocol"
BETWEEN_MECHANISMS: Final = MECHANISMS
KEYS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
VALIDATOR: Final = "sasl.server.callback.handler.class"
UNSECURED_VALIDATOR: Final = "OAuthBearerUnsecuredValidatorCallbackHandler"
REAUTH: Final = "connections.max.reauth.ms"
VALIDATORS: Final = ("OAuthBearerValidatorCallbackHandler", UNSECURED_VALIDATOR)  # the ends of Kafka's class names
_OF_LISTENER: Final = frozenset(definition.name for definition in SECURITY)
_OVERRIDE: Final = re.compile(
    r"listener\.name\.(?P<listener>[a-z0-9_-]+)\.(?:(?P<mechanism>plain|scram-sha-256|scram-sha-512|oauthbearer)\.)?"
    r"(?P<name>(?:ssl|sasl|connections)\..+)"
)


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """`properties` have the broker's values with those of the listener above them, and their own defaults."""

    listener: str
    protocol: str = "PLAINTEXT"
    properties: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    jaas: Mapping[str, str] = field(default_factory=dict, repr=False)  # by mechanism
    of_mechanism: Mapping[tuple[str, str], str] = field(default_factory=dict, repr=False)  # by mechanism and property

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def has_scram(self) -> bool:
        return self.has_sasl and any(each.startswith("SCRAM") for each in self.mechanisms)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The enabled SASL mechanisms."""
        return self.items("sasl.enabled.mechanisms")

    def jaas_name(self, mechanism: str) -> str:
        """Return the name of the property with the JAAS text of a mechanism."""
        return f"{PREFIX}{self.listener.lower()}.{mechanism.lower()}.{JAAS}"

    def text(self, mechanism: str, name: str) -> str:
        """Return the value of a property for a mechanism; empty when it has none."""
        return self.of_mechanism.get((mechanism, name)) or self.properties.get(name) or ""

    def items(self, name: str) -> tuple[str, ...]:
        """Return the value of a list."""
        return tuple(filter(None, (item.strip() for item in (self.properties.get(name) or "").split(","))))


def split_override(name: str) -> tuple[str, str | None, str] | None:
    """Return listener, mechanism (or None) and property in `listener.name.…`; None for any other name."""
    match = _OVERRIDE.fullmatch(name)
    return (match["listener"], match["mechanism"], match["name"]) if match else None


def check_is_read(name: str, listener: str, mechanism: str | None, base: str) -> None:
    """SC7. Check that a property which the broker uses counts for a listener as well. Raises ConfigRefused."""
    if mechanism is None:
        is_read, scope = base in _OF_LISTENER, "a listener"
    else:
        of_tokens = mechanism == "oauthbearer" and (base == VALIDATOR or base.startswith("sasl.oauthbearer."))
        is_read, scope = base in (JAAS, REAUTH) or of_tokens, f"the mechanism {mechanism.upper()} of a listener"
    if not is_read:
        raise ConfigRefused(name, f"Configuration {name}: Rota reads no {base} of {scope}")


def check_listeners_exist(given: Iterable[str], names: Collection[str]) -> None:
    """SC7. Check that properties of single listeners name one of `names`. Raises ConfigRefused."""
    known = {name.lower() for name in names}
    for name in given:
        override = split_override(name)
        if override is not None and override[0] not in known:
            raise ConfigRefused(name, f"Configuration {name}: no listener has that name; known: {', '.join(names)}")


def security_of(
    listener: str, pairs: str, values: Mapping[str, str | None], given: Mapping[str, str]
) -> ListenerSecurity:
    """Return the security of a listener. `pairs` is the map, `values` the broker's, `given` its properties.

    Spaces around a value do not count (BC7), as in Kafka, also around a password. Raises ConfigRefused.
    """
    own, jaas, of_mechanism = {}, {}, {}
    for name, value in given.items():
        text = value.strip()
        match split_override(name):
            case (where, None, base) if where == listener.lower():
                own[base] = text
            case (where, str(mechanism), "sasl.jaas.config") if where == listener.lower():
                jaas[mechanism.upper()] = text
            case (where, str(mechanism), base) if where == listener.lower():
                of_mechanism[mechanism.upper(), base] = text
    properties = {name: None if value is None else value.strip() for name, value in values.items()}
    security = ListenerSecurity(listener, _protocol_of(listener, pairs), {**properties, **own}, jaas, of_mechanism)
    if security.has_sasl:
        _check_mechanisms(security)
    return security


def _protocol_of(listener: str, pairs: str) -> str:
    protocols = {
        left.strip().upper(): right.strip().upper()
        for left, _, right in (each.partition(":") for each in pairs.split(","))
    }
    protocol = protocols.get(listener)
    if protocol is None and listener in PROTOCOLS:
        protocol = listener
    if protocol is None:
        raise ConfigRefused(MAP, f"Configuration {MAP} has no security protocol for the listener {listener}")
    if protocol not in PROTOCOLS:
        raise ConfigRefused(MAP, f"Configuration {MAP}: {protocol} is not one of {', '.join(PROTOCOLS)}")
    return protocol


def _check_mechanisms(security: ListenerSecurity) -> None:
    name, valid = "sasl.enabled.mechanisms", ", ".join(MECHANISMS)
    for mechanism in security.mechanisms:
        if mechanism not in MECHANISMS:
            raise ConfigRefused(
                name,
                f"Configuration {name}: Rota does not support {mechanism} on the listener {security.listener}; "
                f"valid mechanisms are: {valid}",
            )
    if not security.mechanisms:
        raise ConfigRefused(
            name, f"Configuration {name} names no mechanism for the listener {security.listener}: {valid}"
        )
    if "PLAIN" in security.mechanisms and "PLAIN" not in security.jaas:
        jaas = f"{PREFIX}{security.listener.lower()}.plain.{JAAS}"
        raise ConfigRefused(jaas, f"Configuration {jaas} is missing: it names the users of PLAIN on this listener")
    if "OAUTHBEARER" in security.mechanisms:
        _check_oauth(security)


def _check_oauth(security: ListenerSecurity) -> None:
    """OA1. Tokens without a signature count only where their validator is configured by its name."""
    validator, url = security.text("OAUTHBEARER", VALIDATOR).rpartition(".")[2], security.text("OAUTHBEARER", KEYS_URL)
    if validator not in ("", *VALIDATORS):
        raise ConfigRefused(
            VALIDATOR, f"Configuration {VALIDATOR} of OAUTHBEARER has to be a class {' or '.join(VALIDATORS)}"
        )
    if validator != UNSECURED_VALIDATOR and not url.startswith(("https://", "http://", "file:")):
        raise ConfigRefused(
            KEYS_URL,
            f"Configuration {KEYS_URL} is missing for OAUTHBEARER on the listener {security.listener}: the https:, "
            "http: or file: URL of the keys that sign tokens",
        )


def check_is_private(endpoint: Endpoint, security: ListenerSecurity, name: str = "listeners") -> None:
    """SC2. Check that other hosts do not reach a listener in plain text. Raises ConfigRefused."""
    if not security.has_tls and not endpoint.is_loopback:
        setting = "rota.allow.plaintext.beyond.loopback"
        raise ConfigRefused(
            name,
            f"Configuration {name}: {endpoint} is {security.protocol}, in plain text, and other hosts reach it: "
            f"they could read everything, passwords too. Use SSL or SASL_SSL, "
            f"listen on 127.0.0.1, or set {setting}=true",
        )


def check_between_brokers(security: ListenerSecurity) -> None:
    """IB1. Check that brokers can authenticate to each other by this listener. Raises ConfigRefused."""
    if not security.has_sasl:
        return
    mechanism = security.properties.get(BETWEEN) or ""
    if mechanism not in BETWEEN_MECHANISMS or mechanism not in security.mechanisms:
        raise ConfigRefused(
            BETWEEN,
            f"Configuration {BETWEEN} is {mechanism}; on the listener {security.listener} between brokers it has to "
            f"be one of {', '.join(BETWEEN_MECHANISMS)} that sasl.enabled.mechanisms has",
        )
    if mechanism not in security.jaas:
        name = security.jaas_name(mechanism)
        raise ConfigRefused(
            name, f"Configuration {name} is missing: it has the credentials of this broker at other brokers"
        )
