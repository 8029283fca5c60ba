"""SA1 and SA2: what a connection is served before, during and after authentication."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.security.principal import ANONYMOUS, Principal
from rota.coordinator.security.sasl.plain import PlainExchange
from rota.coordinator.security.sasl.session import NotAllowed, Outcome, SaslSession, State
from rota.protocol.errors import ErrorCode

ALICE, BOB, WRONG = b"\0alice\0a", b"\0bob\0b", b"\0alice\0x"
METADATA, HANDSHAKE, VERSIONS, AUTHENTICATE = 3, 17, 18, 36


def plain() -> PlainExchange:
    return PlainExchange({"alice": "a", "bob": "b"})


def session_of(session_ms_max: int = 0) -> SaslSession:
    return SaslSession({"PLAIN": plain, "OTHER": plain}, {"PLAIN": session_ms_max, "OTHER": session_ms_max})


def log_in(session: SaslSession, token: bytes = ALICE, now_ms: int = 0) -> Outcome:
    assert session.handshake("PLAIN", 1, now_ms) == ErrorCode.NONE
    return session.authenticate(token, now_ms)


def is_served(session: SaslSession, key: int, now_ms: int = 0, *, is_known_version: bool = True) -> bool:
    try:
        session.admit(key, is_known_version=is_known_version, now_ms=now_ms)
    except NotAllowed:
        return False
    return True


def test_before_authentication_only_api_versions_once_and_sasl_are_served() -> None:
    session = session_of()
    assert not any(is_served(session, key) for key in range(100) if key not in (HANDSHAKE, VERSIONS))
    assert is_served(session, VERSIONS, is_known_version=False)
    assert is_served(session, VERSIONS)
    assert not is_served(session, VERSIONS)
    assert not is_served(session, AUTHENTICATE)
    assert session.handshake("PLAIN", 1, 0) == ErrorCode.NONE
    assert is_served(session, AUTHENTICATE)
    assert not is_served(session, METADATA)
    assert session.principal is ANONYMOUS


def test_after_authentication_everything_is_served() -> None:
    session = session_of()
    assert log_in(session) == Outcome(message="")
    assert (session.state, session.principal) == (State.OPEN, Principal("User", "alice"))
    assert all(is_served(session, key) for key in (METADATA, VERSIONS, HANDSHAKE, AUTHENTICATE))
    assert session.handshake("PLAIN", 1, 0) == ErrorCode.ILLEGAL_SASL_STATE
    assert session.authenticate(ALICE, 0).code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_served(session, METADATA)


def test_a_refusal_is_the_end() -> None:
    session = session_of()
    assert log_in(session, WRONG).code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert session.state is State.FAILED
    assert not any(is_served(session, key) for key in range(100))


def test_a_mechanism_that_is_not_enabled_is_the_end() -> None:
    session = session_of()
    assert session.handshake("GSSAPI", 1, 0) == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert session.state is State.FAILED


def test_a_handshake_in_the_place_of_a_token_is_the_end() -> None:
    """SA1. As in Kafka the client is told before."""
    session = session_of()
    session.handshake("PLAIN", 1, 0)
    assert is_served(session, HANDSHAKE)
    assert session.handshake("OTHER", 1, 0) == ErrorCode.ILLEGAL_SASL_STATE
    assert session.state is State.FAILED
    assert not any(is_served(session, key) for key in range(100))


def test_a_session_ends_and_is_renewed() -> None:
    session = session_of(session_ms_max=1000)
    assert log_in(session).lifetime_ms == 1000
    assert is_served(session, METADATA, 999)
    assert is_served(session, AUTHENTICATE, 999)  # it is answered with an error
    assert not is_served(session, METADATA, 1000)
    assert not is_served(session, AUTHENTICATE, 1000)
    assert is_served(session, HANDSHAKE, 1000)
    assert log_in(session, now_ms=1500).lifetime_ms == 1000
    assert is_served(session, METADATA, 2499)
    assert not is_served(session, METADATA, 2500)


def test_sa2_two_re_authentications_begin_at_least_a_second_apart() -> None:
    session = session_of(session_ms_max=1500)
    log_in(session)
    log_in(session, now_ms=1)  # the login itself does not count
    assert session.handshake("PLAIN", 1, 1000) == ErrorCode.ILLEGAL_SASL_STATE
    assert is_served(session, METADATA, 1000), "the session goes on"
    log_in(session, now_ms=1001)
    ending = session_of(session_ms_max=500)
    log_in(ending)
    log_in(ending, now_ms=100)
    assert is_served(ending, HANDSHAKE, 599)  # it is answered with an error
    assert not is_served(ending, HANDSHAKE, 600)
    assert is_served(ending, HANDSHAKE, 1100)


def test_requests_are_served_during_a_re_authentication_as_long_as_the_session_lasts() -> None:
    session = session_of(session_ms_max=1000)
    log_in(session)
    session.handshake("PLAIN", 1, 0)
    assert is_served(session, METADATA, 999)
    assert not is_served(session, METADATA, 1000)


def test_another_principal_is_refused_in_kafkas_words() -> None:
    session = session_of(session_ms_max=1000)
    log_in(session)
    outcome = log_in(session, BOB)
    words = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert (outcome.code, outcome.message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, words)
    assert session.principal == Principal("User", "alice")
    assert not is_served(session, METADATA)


def test_another_mechanism_is_hung_up_on() -> None:
    session = session_of(session_ms_max=1000)
    log_in(session)
    with pytest.raises(NotAllowed, match="another mechanism"):
        session.handshake("OTHER", 1, 0)


def test_handshake_0_is_followed_by_bare_tokens_at_login_only() -> None:
    session = session_of(session_ms_max=1000)
    session.handshake("PLAIN", 0, 0)
    assert session.expects_bare_token
    session.authenticate(ALICE, 0)
    assert not session.expects_bare_token
    assert session.handshake("PLAIN", 0, 0) == ErrorCode.ILLEGAL_SASL_STATE


STEPS = st.one_of(
    st.tuples(st.just("admit"), st.integers(0, 100), st.booleans()),
    st.tuples(st.just("handshake"), st.sampled_from(["PLAIN", "OTHER", "GSSAPI"]), st.integers(0, 1)),
    st.tuples(st.just("authenticate"), st.sampled_from([ALICE, BOB, WRONG, b""]), st.just(0)),
)


@given(st.lists(st.tuples(STEPS, st.integers(0, 700)), max_size=12), st.sampled_from([0, 1000]))
def test_no_conversation_is_served_without_a_password(steps: list[Any], session_ms_max: int) -> None:
    session, now_ms, logged_in_ms = session_of(session_ms_max), 0, None
    for (kind, first, second), passed_ms in steps:
        now_ms += passed_ms
        with suppress(NotAllowed):
            if kind == "admit":
                session.admit(first, is_known_version=second, now_ms=now_ms)
                if first not in (HANDSHAKE, VERSIONS, AUTHENTICATE):
                    assert logged_in_ms is not None
                    assert not session_ms_max or now_ms < logged_in_ms + session_ms_max
            elif kind == "handshake":
                session.handshake(first, second, now_ms)
            elif session.authenticate(first, now_ms).code == ErrorCode.NONE:
                assert first in (ALICE, BOB)
                logged_in_ms = now_ms
