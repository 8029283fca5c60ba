from __future__ import annotations

from rota.coordinator.security.sasl.exchange import AuthenticationFailed, Step


def test_a_failure_has_kafkas_text() -> None:
    assert str(AuthenticationFailed.of_mechanism("SCRAM-SHA-512")) == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
    )


def test_no_repr_has_a_token() -> None:
    assert "secret" not in repr(Step(b"secret"))
