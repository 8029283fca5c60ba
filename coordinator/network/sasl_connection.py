"""A connection of a listener with SASL: it serves what its session admits, and every request once that is open.

The class has its own file, so that a connection without SASL pays nothing for it.

Law
    N6  Until it has a principal it counts as unauthenticated: from its TCP connection on, until it is closed.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.network.call import CloseConnection
from rota.coordinator.network.connection import CLOSING, Connection
from rota.coordinator.network.dispatch import UnknownApi, read_head
from rota.coordinator.network.owner import Owner
from rota.coordinator.network.unauthenticated import UnauthenticatedConnections
from rota.coordinator.scheduling.timers import Timers
from rota.coordinator.security.login_modules import OAUTHBEARER
from rota.coordinator.security.sasl.authentication import Authentication
from rota.coordinator.security.sasl.scram import Lookup
from rota.coordinator.security.sasl.session import NotAllowed, SaslSession, State
from rota.protocol.dataclass import dataclass
from rota.protocol.wire import DecodeError

FRAME_BYTES_MAX: Final = 16 * 1024  # before authentication; sasl.server.max.receive.size is for access tokens
_length = struct.Struct(">i").pack


@dataclass(slots=True)
class SaslLimits:
    """What the connections with SASL of one broker share. `config` may change while it runs."""

    config: BrokerConfig
    timers: Timers
    now_ms: Callable[[], int]
    unauthenticated: UnauthenticatedConnections

    def later(self, key: Hashable, call: Callable[[], None]) -> None:
        """Call `call` after connection.failed.authentication.delay.ms."""
        self.timers.at(key, self.now_ms() + self.config.connection_failed_authentication_delay_ms, call)


class SaslConnections:
    """Makes the connections of the listeners with SASL of one broker, `owner`."""

    def __init__(self, owner: Owner, limits: SaslLimits, find_credential: Lookup, wall_ms: Callable[[], int]) -> None:
        self._owner, self._limits = owner, limits
        self._authentication = Authentication(limits.config, find_credential, limits.now_ms, wall_ms)
        self.first_keys, self.close = self._authentication.first_keys, self._authentication.close

    def factory(self, listener: str) -> Callable[[], Connection]:
        """Return what makes a connection of a listener. Raises ConfigRefused when its SASL cannot be set up."""
        self._authentication.session(listener)
        return partial(self._connection, listener)

    def _connection(self, listener: str) -> Connection:
        return SaslConnection(self._owner, listener, self._authentication.session(listener), self._limits)


class SaslConnection(Connection):
    """A connection with an authentication of its own."""

    __slots__ = ("_limits", "_session", "_token_bytes_max")

    def __init__(self, owner: Owner, listener: str, session: SaslSession, limits: SaslLimits) -> None:
        super().__init__(owner, listener)
        self.sasl = session
        self._session, self._limits = session, limits
        size = limits.config.security[listener].properties["sasl.server.max.receive.size"] or FRAME_BYTES_MAX
        self._token_bytes_max = min(int(size), owner.frame_bytes_max)
        self._framer.bytes_max = min(FRAME_BYTES_MAX, self._token_bytes_max)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.handshake is None:
            self._limits.unauthenticated.add(self)
        else:
            self.handshake.connection = self

    def connection_lost(self, exc: Exception | None) -> None:
        self._authenticated()
        super().connection_lost(exc)

    def _authenticated(self) -> None:
        self._limits.unauthenticated.discard(self.handshake or self)

    def give_up(self, why: str) -> None:
        """Close the connection at once: its time is over, or there are too many. N10: it may be closing already."""
        if not self._mute_reasons & CLOSING:
            self._owner.protocol_error(self, why)
        self.abort()

    def _serve(self, frame: bytes) -> bool:
        session = self._session
        if session.expects_bare_token:
            self._serve_token(frame)
            return True
        try:
            api = read_head(frame)[0]
        except struct.error:
            raise DecodeError("a frame shorter than its header") from None
        try:
            session.admit(api >> 16, is_known_version=self._is_known(api), now_ms=self._limits.now_ms())
            before = session.state
            served = super()._serve(frame)
        except NotAllowed as why:
            raise CloseConnection(str(why)) from None
        if session.state is not before:
            self._state_changed()
        return served

    def _is_known(self, api: int) -> bool:
        if self._session.has_principal:
            return True
        try:
            return self._owner.handler_of(api).version == api & 0xFFFF
        except UnknownApi:
            return False

    def _serve_token(self, token: bytes) -> None:
        """Answer a token that is not in a SaslAuthenticate request; a refusal has no answer."""
        outcome = self._session.authenticate(token, self._limits.now_ms())
        if self._session.state is State.FAILED:
            self._mute_reasons |= CLOSING
            self._limits.later(("sasl", self.id), self._failed)
            return
        self._output.append(_length(len(outcome.token)) + outcome.token)
        if self._session.state is State.OPEN:
            self._state_changed()

    def _failed(self) -> None:
        self._owner.protocol_error(self, self._session.failure)
        self.finish()

    def _state_changed(self) -> None:
        session = self._session
        if session.mechanism == OAUTHBEARER and not session.has_principal:
            self._framer.bytes_max = self._token_bytes_max
        if session.state is State.FAILED:
            self.end(session.failure)  # after the reply, which is delayed
        elif session.state is State.OPEN:
            self.principal = session.principal
            self._handlers.clear()  # the next calls name the principal
            self._framer.bytes_max = self._owner.frame_bytes_max
            self._authenticated()
