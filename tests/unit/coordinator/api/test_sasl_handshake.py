from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.node import Call
from rota.coordinator.api.sasl_handshake import sasl_handshake
from rota.coordinator.security.sasl.plain import PlainExchange
from rota.coordinator.security.sasl.session import SaslSession
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def answer(session: SaslSession | None, mechanism: str = "PLAIN") -> SaslHandshakeResponse:
    call = Call(1, "test", "/127.0.0.1", "127.0.0.1", 9092, sasl=session)
    return sasl_handshake(World().node, call, SaslHandshakeRequest(mechanism=mechanism))


@pytest.mark.parametrize("mechanism", ["PLAIN", "GSSAPI"])
def test_the_answer_names_the_enabled_mechanisms(mechanism: str) -> None:
    session = SaslSession({"PLAIN": lambda: PlainExchange({})})
    expected = ErrorCode.NONE if mechanism == "PLAIN" else ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer(session, mechanism) == SaslHandshakeResponse(error_code=expected, mechanisms=("PLAIN",))


def test_a_listener_without_sasl_refuses() -> None:
    assert answer(None) == SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
