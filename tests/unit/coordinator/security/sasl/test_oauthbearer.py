"""OAUTHBEARER as a conversation; what the living Kafka 4.3 answers to the same messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.coordinator.security.oauth.test_access_token import NOW, NOW_MS, token

from rota.coordinator.security.oauth.access_token import Claims, UnsecuredValidator
from rota.coordinator.security.sasl.exchange import AuthenticationFailed, Step
from rota.coordinator.security.sasl.oauthbearer import MESSAGE_BYTES_MAX, OauthbearerExchange
from rota.coordinator.security.sasl.session import SaslSession, State
from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateResponse

REFUSED = b'{"status":"invalid_token"}'
GENERIC = "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
METADATA = 3


def exchange() -> OauthbearerExchange:
    return OauthbearerExchange(UnsecuredValidator(Claims(), lambda: NOW_MS), lambda: NOW_MS)


def message(text: str, header: str = "n,,", scheme: str = "Bearer", extensions: str = "") -> bytes:
    return f"{header}\x01auth={scheme} {text}\x01{extensions}\x01".encode()


@pytest.mark.parametrize(
    "first",
    [
        message(token()),
        message(token(), scheme="bearer"),
        message(token(), "n,a=alice,"),
        message(token(), extensions="trace=1\x01other=a b\x01"),
    ],
)
def test_a_valid_token_authenticates_until_it_expires(first: bytes) -> None:
    assert exchange().step(first) == Step(user="alice", lifetime_ms=60_000)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xff\xfe",
        message(token(), "y,,"),
        message(token(), "p=x,,"),
        message(token(), "n,a=,"),
        message(token(), scheme="Basic"),
        message(""),
        message(token(), extensions="tr-ace=1\x01"),
        message(token(), extensions="trace=\x01"),
        b"n,,\x01x=1\x01\x01",
        b"n,,\x01\x01",
        b"n,,",
        message(token())[:-1],
        message(token()) + b"\x01",
        message(token(), extensions=f"auth=Bearer {token()}\x01"),
    ],
)
def test_another_message_is_refused_without_a_reason(first: bytes) -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        exchange().step(first)
    assert str(refused.value) == GENERIC


def test_a_refused_token_has_a_challenge_and_the_client_ends_it() -> None:
    for text in ("abc", token(exp=NOW - 1), token(sub=None), token({"alg": "RS256"})):
        conversation = exchange()
        assert conversation.step(message(text)) == Step(REFUSED)
        with pytest.raises(AuthenticationFailed) as refused:
            conversation.step(b"\x01")
        assert str(refused.value).encode() == REFUSED
        assert refused.value.reason.startswith("the token is refused: it")


def test_another_answer_to_the_challenge_is_no_way_in() -> None:
    for second in (b"", b"xx", message(token())):
        conversation = exchange()
        conversation.step(message("abc"))
        with pytest.raises(AuthenticationFailed) as refused:
            conversation.step(second)
        assert str(refused.value) == GENERIC


def test_an_authorization_id_is_that_of_the_token() -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        exchange().step(message(token(), "n,a=bob,"))
    assert str(refused.value) == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
        "principal name (alice)"
    )
    assert exchange().step(message(token(sub="a,b=c"), "n,a=a=2Cb=3Dc,")).user == "a,b=c"


def test_the_text_of_a_refusal_fits_into_a_response() -> None:
    """Versions 0 and 1 have 16 bits for its length."""
    machine = session(0)
    machine.handshake("OAUTHBEARER", 1, 0)
    outcome = machine.authenticate(message(token(), f"n,a={'b' * 40_000},"), 0)
    response = SaslAuthenticateResponse(error_code=outcome.code, error_message=outcome.message, auth_bytes=b"")
    assert outcome.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    for version in SaslAuthenticateResponse.VERSIONS:
        assert len(codec(SaslAuthenticateResponse, version).encode(response)) < 5_000
    named = session(60_000)
    for user in ("alice", "\U0001f600" * 9_000):  # another principal at a re-authentication
        named.handshake("OAUTHBEARER", 1, 0)
        outcome = named.authenticate(message(token(sub=user)), 0)
    assert len((outcome.message or "").encode()) < 5_000


def test_a_message_is_bounded() -> None:
    with pytest.raises(AuthenticationFailed):
        exchange().step(message("x" * MESSAGE_BYTES_MAX))


def session(session_ms_max: int) -> SaslSession:
    return SaslSession({"OAUTHBEARER": exchange}, {"OAUTHBEARER": session_ms_max})


@pytest.mark.parametrize(("session_ms_max", "lifetime_ms"), [(0, 60_000), (90_000, 60_000), (5_000, 5_000)])
def test_a_session_ends_with_its_token_or_before(session_ms_max: int, lifetime_ms: int) -> None:
    machine = session(session_ms_max)
    machine.handshake("OAUTHBEARER", 1, 0)
    assert machine.authenticate(message(token()), 1000).lifetime_ms == lifetime_ms
    assert machine.expires_ms == 1000 + lifetime_ms
    assert machine.handshake("OAUTHBEARER", 1, 0) == ErrorCode.NONE  # a re-authentication
    refused = machine.authenticate(message(token(sub="bob")), 2000)
    assert refused.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.message == "Cannot change principals during re-authentication from User.alice: User.bob"


def test_the_reason_of_a_refusal_is_for_the_log() -> None:
    machine = session(0)
    machine.handshake("OAUTHBEARER", 1, 0)
    assert machine.authenticate(message(token(exp=NOW - 1)), 0).token == REFUSED
    outcome = machine.authenticate(b"\x01", 0)
    assert outcome.message is not None
    assert outcome.message.encode() == REFUSED
    assert machine.failure == "authentication by OAUTHBEARER failed: the token is refused: it has expired"


@given(st.lists(st.binary(max_size=80) | st.sampled_from([message(token()), message("x"), b"\x01"]), max_size=6))
def test_no_bytes_but_a_valid_token_open_a_session(messages: list[bytes]) -> None:
    machine = session(0)
    machine.handshake("OAUTHBEARER", 1, 0)
    refused = False
    for each in messages:
        was_tokens = machine.state is State.TOKENS
        machine.authenticate(each, 0)
        if was_tokens and not refused and each == message(token()):
            assert machine.state is State.OPEN
        assert (machine.state is State.OPEN) == machine.has_principal
        if machine.has_principal:
            assert message(token()) in messages
            return
        refused = refused or was_tokens
