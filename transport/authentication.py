"""SASL over a connection: SaslHandshake, SaslAuthenticate, and again before the session ends (KIP-152, KIP-368).

Laws
    A broker's refusal is AuthenticationFailed at once, with the broker's text; it is not repeated.
    A session is renewed before its end, after the requests that were sent before; those that come meanwhile wait, and
    none fails. New credentials are there before any request waits, unless the session ends first: a broker hangs up on
    a request after the end. That is reckoned from before the broker has begun the session.
    A provider without a new token is called again until the session is over.
    A renewal that ends in any other way, also by a cancellation before its first step, ends the connection with the
    reason. Requests that wait for it are not written: the broker waits for the end of an authentication.
    A lifetime below 0 is none, as in Kafka's clients; however short it is, renewals are RENEWAL_SECONDS_MIN apart. The
    first one follows a login and does not wait; in a session that ends before the next one may begin, requests wait.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Final, NamedTuple

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from rota.transport.connection import Connection
from rota.transport.errors import AuthenticationFailed, KafkaError, Unreachable, Unsupported
from rota.transport.sasl.conversation import Conversation, InvalidChallenge
from rota.transport.sasl.login import Login

RENEWED_FROM: Final = 0.85  # of a session's lifetime, as Kafka's clients
RENEWED_TO: Final = 0.95
RETRY_SECONDS_MIN: Final = 1.0
RENEWAL_SECONDS_MIN: Final = 1.0  # between two renewals: Kafka refuses earlier ones, whatever lifetime it gave
STEPS_MAX: Final = 8  # of one conversation; SCRAM has two


class _Session(NamedTuple):
    """`began`: when the last message was sent, in the loop's time; `lifetime` in seconds, 0 for one without end."""

    began: float
    lifetime: float

    @property
    def ends(self) -> float:
        return self.began + self.lifetime

    @property
    def last_written_at(self) -> float:
        """The time from which on no request is written, so that it does not arrive after the end."""
        return self.ends - min(self.lifetime * (1 - RENEWED_TO), RETRY_SECONDS_MIN)


async def authenticate(connection: Connection, login: Login, seconds: float) -> None:
    """Authenticate the connection, and renew its sessions until it ends. Raises AuthenticationFailed, Unreachable,
    TimedOut."""
    session = await _authenticated(connection, login, await login.conversation(), seconds)
    if session.lifetime > 0:
        loop = asyncio.get_running_loop()
        renewal = _renew_until_end(connection, login, seconds, session)
        task = loop.create_task(renewal, name=f"renew the session with {connection.peer}")
        task.add_done_callback(partial(_renewal_ended, connection))
        connection.attach(task)


async def require_no_sasl(connection: Connection, seconds: float) -> None:
    """Raise AuthenticationFailed when the listener requires SASL. Such a listener answers ApiVersions, and hangs up
    without a word at the next request; SaslHandshake is the one that it answers."""
    try:
        response: SaslHandshakeResponse = await connection.send_request_ahead(
            SaslHandshakeRequest(mechanism=""), seconds
        )
    except Unsupported:
        return
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms)
        problem = f"its listener requires SASL ({offered}): set security_protocol to SASL_SSL or SASL_PLAINTEXT"
        raise AuthenticationFailed(f"broker {connection.peer} closes connections: {problem}", broker=connection.peer)


async def _authenticated(connection: Connection, login: Login, conversation: Conversation, seconds: float) -> _Session:
    """One authentication."""
    loop = asyncio.get_running_loop()
    mechanism = login.mechanism
    await _choose(connection, mechanism, seconds)
    message = conversation.first()
    for _ in range(STEPS_MAX):
        request, began = SaslAuthenticateRequest(auth_bytes=message), loop.time()
        response: SaslAuthenticateResponse = await connection.send_request_ahead(request, seconds)
        if response.error_code:
            text = response.error_message or ErrorCode.of(response.error_code).text
            raise _failed(connection.peer, mechanism, text, text)
        try:
            following = await asyncio.to_thread(conversation.respond, response.auth_bytes)  # SCRAM's key takes some ms
        except InvalidChallenge as why:
            raise _failed(connection.peer, mechanism, f"the broker's message cannot be accepted: {why}") from why
        if following is None:
            return _Session(began, response.session_lifetime_ms / 1000)
        message = following
    raise _failed(connection.peer, mechanism, f"the broker has not finished after {STEPS_MAX} messages")


async def _choose(connection: Connection, mechanism: str, seconds: float) -> None:
    """Raises AuthenticationFailed when the broker does not have the mechanism."""
    request = SaslHandshakeRequest(mechanism=mechanism)
    try:
        response: SaslHandshakeResponse = await connection.send_request_ahead(request, seconds, version_min=1)
    except Unsupported as why:
        raise _failed(connection.peer, mechanism, str(why)) from why
    code = response.error_code
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms) or "none"
        raise _failed(connection.peer, mechanism, f"it does not have this mechanism; it has {offered} (sasl_mechanism)")
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        remedy = "security_protocol PLAINTEXT or SSL fits it, or another port"
        raise _failed(connection.peer, mechanism, f"its listener has no SASL; {remedy}")
    if code:
        raise _failed(connection.peer, mechanism, f"{ErrorCode.of(code).name} ({code}): {ErrorCode.of(code).text}")


async def _renew_until_end(connection: Connection, login: Login, seconds: float, session: _Session) -> None:
    loop = asyncio.get_running_loop()
    allowed_at = session.began
    while session.lifetime > 0:
        await asyncio.sleep(session.began + session.lifetime * random.uniform(RENEWED_FROM, RENEWED_TO) - loop.time())
        with connection.hold(session.last_written_at) as hold_now:
            try:
                conversation = await _new_conversation(login, session.ends)
                hold_now()
                await asyncio.sleep(allowed_at - loop.time())
                session = await _authenticated(connection, login, conversation, seconds)
                allowed_at = loop.time() + RENEWAL_SECONDS_MIN
            except BaseException as why:
                _end(connection, why)
                raise


def _renewal_ended(connection: Connection, renewal: asyncio.Task[None]) -> None:
    why = asyncio.CancelledError() if renewal.cancelled() else renewal.exception()
    if why is not None:
        _end(connection, why)


def _end(connection: Connection, why: BaseException) -> None:
    """End the connection, whose session cannot be renewed. Of an ended connection the first reason stays."""
    if isinstance(why, KafkaError):
        connection.end(why)
        return
    what = "was cancelled" if isinstance(why, asyncio.CancelledError) else f"failed with {type(why).__name__}"
    reason = Unreachable(f"the renewal of the session with broker {connection.peer} {what}; the connection was closed")
    reason.__cause__ = why
    connection.end(reason)


async def _new_conversation(login: Login, ends: float) -> Conversation:
    """A conversation with valid credentials, until the session ends. Raises AuthenticationFailed."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return await login.conversation()
        except AuthenticationFailed:
            left = ends - loop.time()
            if left < RETRY_SECONDS_MIN:
                raise
            await asyncio.sleep(max(left / 2, RETRY_SECONDS_MIN))


def _failed(broker: str, mechanism: str, problem: str, detail: str = "") -> AuthenticationFailed:
    what = "refused the authentication" if detail else "cannot be used for an authentication"
    message = f"broker {broker} {what} with {mechanism}: {problem}"
    return AuthenticationFailed(message, broker=broker, mechanism=mechanism, detail=detail)
