"""Accepts the connections of one listening socket with TLS; a protocol begins when its handshake is done.

asyncio's own server could do it. Here the context is looked up for each connection, so that new certificates need no
new socket; the number of handshakes is bounded; and a failure is one line in the log, with its reason.

Law
    N10 A peer that does not answer the end of its TLS connection does not keep it open.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog

from rota.coordinator.network.connections import TOO_MANY_NEW
from rota.coordinator.network.open_files import AcceptedSockets
from rota.coordinator.network.owner import address
from rota.coordinator.network.refused_peers import RefusedPeers
from rota.coordinator.network.unauthenticated import Unauthenticated, UnauthenticatedConnections
from rota.coordinator.security.tls import HANDSHAKE_SOCKET

log = structlog.get_logger("rota.server")

HANDSHAKE_SECONDS_MAX: Final = 3600.0  # the limit that counts is that of unauthenticated connections
SHUTDOWN_SECONDS_MAX: Final = 5.0  # N10: from a connection's close, for what is unsent and the peer's close_notify
ACCEPT_RETRY_SECONDS: Final = 0.1  # after an error of the system, such as too many open files
NO_FILES: Final = "the limit on open files allows no more connections: raise `ulimit -n`"
_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE", "INTERNAL_ERROR")
_REASONS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate, which ssl.client.auth=required demands",
    "NO_SHARED_CIPHER": "it has no cipher suite in common with ssl.cipher.suites",
    "UNSUPPORTED_PROTOCOL": "it has no version of TLS in common with ssl.enabled.protocols",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept the broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept the broker's certificate",
}


class TlsServer:
    """`context()` is that of the next handshake; `accept(handshake)` makes the protocol of a peer.

    `delay_ms(host)` is for how long one is held and closed. Beside `start`, it has what listeners use of asyncio's
    servers.
    """

    def __init__(
        self,
        name: str,
        context: Callable[[], ssl.SSLContext],
        accept: Callable[[TlsHandshake], asyncio.BaseProtocol],
        unauthenticated: UnauthenticatedConnections,
        delay_ms: Callable[[str], int] = lambda host: 0,
        accepted_sockets: AcceptedSockets | None = None,
    ) -> None:
        self._name, self._context, self._accept = name, context, accept
        self._unauthenticated, self._delay_ms = unauthenticated, delay_ms
        self._accepted_sockets = AcceptedSockets() if accepted_sockets is None else accepted_sockets
        self._refused_peers = RefusedPeers()
        self._task: asyncio.Task[None] | None = None
        self._held: set[socket.socket] = set()  # CQ11
        self.sockets: tuple[socket.socket, ...] = ()

    def start(self, listening: socket.socket, backlog: int) -> None:
        """Accept the connections of a bound socket."""
        listening.setblocking(False)
        listening.listen(backlog)
        self.sockets = (listening,)
        self._task = asyncio.get_running_loop().create_task(self._accept_all(listening))

    def close(self) -> None:
        """Accept no more, and close what is held."""
        if self._task is not None:
            self._task.cancel()
        for held in tuple(self._held):
            self._release(held)

    async def wait_closed(self) -> None:
        """Wait until the socket is closed."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        for listening in self.sockets:
            listening.close()  # a task that is cancelled before its first step has not done it

    async def _accept_all(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    accepted, peer = await loop.sock_accept(listening)
                except OSError as error:
                    log.error("No connection is accepted", listener=self._name, reason=str(error))
                    await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                    continue
                handshake = TlsHandshake(self._name, address(peer), accepted, self._refused_peers)
                self._admit(handshake)
        finally:
            listening.close()

    def _admit(self, handshake: TlsHandshake) -> None:
        loop, accepted = asyncio.get_running_loop(), handshake.accepted
        if not self._accepted_sockets.add() and (  # N13
            self._unauthenticated.drop(NO_FILES) or not self._accepted_sockets.add_in_place(self._name)
        ):
            handshake.failed(NO_FILES)
            accepted.close()
            return
        delay_ms = self._delay_ms(handshake.peer[0])
        if delay_ms:  # CQ11: no handshake, which is the expensive part
            handshake.failed(TOO_MANY_NEW)
            self._held.add(accepted)
            loop.call_later(delay_ms / 1_000, self._release, accepted)
            return
        handshake.task = loop.create_task(self._perform(handshake))
        self._unauthenticated.add(handshake)

    def _release(self, held: socket.socket) -> None:
        if held in self._held:
            self._held.remove(held)
            held.close()
            self._accepted_sockets.remove()

    async def _perform(self, handshake: TlsHandshake) -> None:
        loop = asyncio.get_running_loop()
        HANDSHAKE_SOCKET.set(handshake.accepted)
        try:
            await loop.connect_accepted_socket(
                partial(self._accept, handshake),
                handshake.accepted,
                ssl=self._context(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS_MAX,
            )
        except ConnectionError:
            pass  # the peer went away
        except OSError as error:  # ssl.SSLError is one
            handshake.failed(_reason(error))
        finally:
            self._accepted_sockets.remove()
            if handshake.connection is None:
                self._unauthenticated.discard(handshake)


class TlsHandshake:
    """One handshake that is under way, and then its connection if that has to authenticate by SASL.

    Both have one time and count as one.
    """

    def __init__(
        self, listener: str, peer: tuple[str, int], accepted: socket.socket, refused_peers: RefusedPeers
    ) -> None:
        self._listener, self.peer, self.accepted = listener, peer, accepted
        self._refused_peers = refused_peers
        self.task: asyncio.Task[None] | None = None
        self.connection: Unauthenticated | None = None  # it discards this handshake

    def failed(self, reason: str) -> None:
        """N7. Log why there is no connection."""
        line = self._refused_peers.count(self.peer[0], reason)
        if line is not None:
            peer = "{}:{}".format(*self.peer)
            log.warning("TLS handshake failed", listener=self._listener, peer=peer, reason=reason, **line)

    def give_up(self, why: str) -> None:
        """Close the connection: its time is over, or there are too many."""
        if self.connection is not None:
            self.connection.give_up(why)
            return
        self.failed(why)
        with suppress(OSError):  # the peer has closed it
            self.accepted.shutdown(socket.SHUT_RDWR)  # ends the handshake; uvloop's goes on when its task is cancelled


def _reason(error: Any) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    reason = getattr(error, "reason", None) or ""
    if reason in _NOT_TLS:
        return f"it sent something else than TLS; is its security.protocol PLAINTEXT or SASL_PLAINTEXT? ({reason})"
    return _REASONS.get(reason, reason.replace("_", " ").lower() or str(error))
