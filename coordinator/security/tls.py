"""TLS of a listener: from Kafka's ssl.* properties to an `ssl.SSLContext`, and the principal of a client's certificate.

Laws
    SC3 A change of a file of keys or certificates counts for the next connection. Files that cannot be used are
        reported, and the certificates before them stay in use.
    SC5 A peer whose handshake fails gets the alert that says why, before its connection is closed.
    SC8 Each certificate of the trust store is trusted itself, whoever signed it: a client with one of several
        self-signed certificates of one name, too.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import structlog

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import PREFIX, ListenerSecurity
from rota.coordinator.security.distinguished_name import subject_of
from rota.coordinator.security.principal import ANONYMOUS, USER, Principal
from rota.coordinator.security.principal_mapping import map_name, parse_rules
from rota.transport.errors import SettingRefused
from rota.transport.tls import TlsSettings, client_context, configure

log = structlog.get_logger("rota.security")

IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")
STORE_PROPERTIES: Final = (
    *(f"keystore.{part}" for part in ("location", "type", "password", "key", "certificate.chain")),
    *(f"truststore.{part}" for part in ("location", "type", "password", "certificates")),
    "key.password",
)
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

HANDSHAKE_SOCKET: ContextVar[socket.socket | None] = ContextVar("HANDSHAKE_SOCKET", default=None)

Stamp = tuple[tuple[int, int], ...]  # time of the change in ns and size of each file


class ListenerTls:
    """The context of one listener. Raises ConfigRefused."""

    def __init__(self, security: ListenerSecurity) -> None:
        self._security, self._stamp = security, _stamp(security)
        self._rules = parse_rules(security.properties.get("ssl.principal.mapping.rules") or "DEFAULT")
        self.context = server_context(security)

    def refresh(self, security: ListenerSecurity) -> None:
        """SC3. Read the files again if they or the properties have changed."""
        stamp = _stamp(security)
        if stamp == self._stamp and security == self._security:
            return
        self._security, self._stamp = security, stamp
        try:
            rules = parse_rules(security.properties.get("ssl.principal.mapping.rules") or "DEFAULT")
            self.context, self._rules = server_context(security), rules
        except ConfigRefused as refused:
            log.error("TLS keeps its certificates", listener=security.listener, reason=str(refused))
        else:
            log.info("TLS has new certificates", listener=security.listener)

    def principal_of(self, connection: Any) -> Principal:
        """Return who a TLS connection belongs to. Raises NoMatchingRule."""
        certificate = connection.getpeercert(binary_form=True)
        if not certificate:
            return ANONYMOUS
        return Principal(USER, map_name(self._rules, subject_of(certificate)))


class AlertingContext(ssl.SSLContext):
    """SC5. A context whose failed handshakes send their alert: event loops close the socket without it.

    `HANDSHAKE_SOCKET` is the socket of the handshake that begins in this task.
    """

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        wrapped = super().wrap_bio(incoming, outgoing, *args, **kwargs)
        if isinstance(wrapped, AlertingObject):
            wrapped.outgoing, wrapped.socket = outgoing, HANDSHAKE_SOCKET.get()
        return wrapped


class AlertingObject(ssl.SSLObject):
    """One connection of an AlertingContext."""

    outgoing: ssl.MemoryBIO | None = None
    socket: socket.socket | None = None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            alert = b"" if self.outgoing is None else self.outgoing.read()
            if alert and self.socket is not None:
                with suppress(OSError):  # the peer is gone, or does not read
                    self.socket.send(alert)
            raise


AlertingContext.sslobject_class = AlertingObject


def server_context(security: ListenerSecurity) -> ssl.SSLContext:
    """Return a context for the connections of a listener. Raises ConfigRefused."""
    properties = security.properties
    if not (properties.get("ssl.keystore.location") or properties.get("ssl.keystore.key")):
        raise _refused(security, "ssl.keystore.location", "is missing: TLS needs a key and a certificate")
    context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.verify_mode = _CLIENT_AUTH[properties.get("ssl.client.auth") or "none"]
    try:
        configure(context, _settings(security))
    except SettingRefused as refused:
        raise _unusable(security, refused) from None
    return context


def context_between_brokers(security: ListenerSecurity) -> ssl.SSLContext:
    """Return a context for connections to the listener of that name of other brokers. Raises ConfigRefused."""
    try:
        return client_context(_settings(security))
    except SettingRefused as refused:
        raise _unusable(security, refused) from None


def _settings(security: ListenerSecurity) -> TlsSettings:
    values: dict[str, Any] = {
        name.replace(".", "_"): security.properties.get(f"ssl.{name}") for name in STORE_PROPERTIES
    }
    return TlsSettings(
        enabled_protocols=security.items("ssl.enabled.protocols"),
        cipher_suites=security.items("ssl.cipher.suites"),
        endpoint_identification_algorithm=(security.properties.get(IDENTIFICATION) or "").lower(),
        **values,
    )


def _unusable(security: ListenerSecurity, refused: SettingRefused) -> ConfigRefused:
    return _refused(security, refused.setting.replace("_", "."), str(refused).partition(") ")[2])


def _refused(security: ListenerSecurity, name: str, problem: str) -> ConfigRefused:
    own = f"{PREFIX}{security.listener.lower()}.{name}"
    return ConfigRefused(name, f"Configuration {name} of the listener {security.listener} {problem} (or set {own})")


def _stamp(security: ListenerSecurity) -> Stamp:
    return tuple(_stamp_of(security.properties.get(name)) for name in FILES)


def _stamp_of(path: str | None) -> tuple[int, int]:
    try:
        found = Path(path).stat() if path else None
    except OSError:
        found = None
    return (found.st_mtime_ns, found.st_size) if found else (0, 0)
