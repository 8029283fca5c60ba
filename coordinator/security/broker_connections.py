"""Connections to other brokers, secured as the inter-broker listener: every request between brokers uses them.

Laws
    IB2 A connection to another broker has the TLS and the SASL of the inter-broker listener; with either of them no
        other listener of that broker is used.
    IB3 Certificates, passwords and settings are read for each new connection: changes count for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import BETWEEN, ListenerSecurity
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.transport.errors import KafkaError

if TYPE_CHECKING:
    from rota.transport.connection import Connection
    from rota.transport.sasl.login import Login
    from rota.transport.security import Security


class NotRegistered(KafkaError):
    """The broker is not registered, or has no listener for brokers, so that its address is unknown."""


class NotSecured(KafkaError):
    """The settings of the inter-broker listener cannot be used."""


async def connect_to_broker(
    broker_id: int,
    brokers: Mapping[int, BrokerRegistration],
    config: BrokerConfig,
    client_id: str,
    *,
    setup_seconds: float,
    request_seconds: float,
    ended: Callable[[Connection], None],
) -> Connection:
    """Return an open connection to a broker of the cluster, authenticated. Raises KafkaError."""
    from rota.transport.handshake import connect  # a broker alone needs no transport

    endpoint = _endpoint(broker_id, brokers.get(broker_id), config)
    try:
        security = security_between_brokers(config)
    except ConfigRefused as refused:
        raise NotSecured(f"no connection to broker {broker_id}: {refused}") from None
    return await connect(
        endpoint.host,
        endpoint.port,
        f"{broker_id} at {endpoint.host}:{endpoint.port}",
        client_id,
        setup_seconds=setup_seconds,
        request_seconds=request_seconds,
        ended=ended,
        security=security,
    )


def security_between_brokers(config: BrokerConfig) -> Security:
    """Return the TLS and the credentials of this broker at others. Raises ConfigRefused."""
    from rota.transport.security import PLAINTEXT, Security

    listener = config.security[config.inter_broker_listener]
    if not listener.has_tls and not listener.has_sasl:
        return PLAINTEXT
    tls = None
    if listener.has_tls:
        from rota.coordinator.security.tls import context_between_brokers  # SC4: not without TLS

        tls = context_between_brokers(listener)
    return Security(tls, _login(listener) if listener.has_sasl else None)


def _endpoint(broker_id: int, broker: BrokerRegistration | None, config: BrokerConfig) -> Endpoint:
    """IB2. Raises NotRegistered."""
    name = config.inter_broker_listener
    endpoint = None if broker is None else broker.endpoint(name)
    if endpoint is None:
        raise NotRegistered(f"broker {broker_id} is not registered")
    if endpoint.listener != name and config.security[name].protocol != "PLAINTEXT":
        raise NotRegistered(f"broker {broker_id} has no listener {name}, by which brokers reach each other")
    return endpoint


def _login(listener: ListenerSecurity) -> Login:
    """Return the credentials in the login module, as Kafka takes them. Raises ConfigRefused."""
    from rota.coordinator.security.login_modules import OAUTHBEARER, login_module
    from rota.transport.sasl.login import PasswordLogin

    mechanism = listener.properties.get(BETWEEN) or ""
    if mechanism == OAUTHBEARER:
        from rota.coordinator.security.broker_tokens import token_login

        return token_login(listener)
    name, expected = listener.jaas_name(mechanism), "PlainLoginModule" if mechanism == "PLAIN" else "ScramLoginModule"
    options = login_module(name, listener.jaas.get(mechanism, ""), expected).options
    username, password = options.get("username"), options.get("password")
    if not username or not password:
        raise ConfigRefused(name, f"Configuration {name} has no username and password of this broker at other brokers")
    return PasswordLogin(mechanism, username, password)
