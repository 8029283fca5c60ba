from __future__ import annotations

from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.node import Call
from rota.coordinator.api.sasl_authenticate import sasl_authenticate
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.sasl.plain import PlainExchange
from rota.coordinator.security.sasl.session import SaslSession
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def session_of() -> SaslSession:
    session = SaslSession({"PLAIN": lambda: PlainExchange({"alice": "a"})}, {"PLAIN": 5000})
    session.handshake("PLAIN", 1, 0)
    return session


def call_of(session: SaslSession | None) -> Call:
    return Call(2, "test", "/127.0.0.1", "127.0.0.1", 9092, sasl=session)


def test_the_answer_has_the_lifetime_of_the_session() -> None:
    response = sasl_authenticate(World().node, call_of(session_of()), SaslAuthenticateRequest(auth_bytes=b"\0alice\0a"))
    assert response == SaslAuthenticateResponse(session_lifetime_ms=5000, error_message="")


def test_a_refusal_is_answered_after_the_delay() -> None:
    world = World({"connection.failed.authentication.delay.ms": "250"})
    reply = sasl_authenticate(world.node, call_of(session_of()), SaslAuthenticateRequest(auth_bytes=b"\0alice\0x"))
    assert isinstance(reply, DelayedReply)
    world.after(249)
    assert not reply.answered
    world.after(1)
    assert reply.result() == SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
        error_message="Authentication failed: Invalid username or password",
    )


def test_a_listener_without_sasl_refuses() -> None:
    response = sasl_authenticate(World().node, call_of(None), SaslAuthenticateRequest(auth_bytes=b""))
    assert isinstance(response, SaslAuthenticateResponse)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
