"""The claims of a token, and tokens without a signature."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.security.oauth.access_token import (
    EXPIRES_MS_MAX,
    AccessToken,
    Claims,
    TokenRefused,
    UnsecuredValidator,
    unsecured_claims,
)

NOW_MS = 1_000_000_000
NOW = NOW_MS // 1000
VALID = {"sub": "alice", "iat": NOW, "exp": NOW + 60}


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(header: Any = None, **claims: Any) -> str:
    return f"{part({'alg': 'none'} if header is None else header)}.{part({**VALID, **claims})}."


def accepted(text: str, claims: Claims = Claims()) -> AccessToken:  # noqa: B008 (frozen)
    return UnsecuredValidator(claims, lambda: NOW_MS).validate(text)


def test_a_token_names_its_principal_and_its_end() -> None:
    assert accepted(token()) == AccessToken("alice", (NOW + 60) * 1000)
    assert accepted(token(exp=NOW + 0.5)).expires_ms == NOW_MS + 500
    assert accepted(token(exp=1e308)).expires_ms == EXPIRES_MS_MAX
    assert accepted(token(exp=int("9" * 4000))).expires_ms == EXPIRES_MS_MAX
    assert accepted(token(iat=None)).principal == "alice"  # Kafka's unsecured validator does not need it


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": None}, "no time of expiry"),
        ({"exp": NOW}, "expired"),
        ({"exp": True}, "'exp' is no time"),
        ({"exp": "soon"}, "'exp' is no time"),
        ({"exp": math.nan}, "'exp' is no time"),
        ({"exp": math.inf}, "'exp' is no time"),
        ({"iat": 1e308}, "expires before it is issued"),
        ({"nbf": int("9" * 4000)}, "not valid yet"),
        ({"sub": "a\ud800"}, "'sub' is no name"),
        ({"iat": NOW + 1}, "not valid yet"),
        ({"nbf": NOW + 1}, "not valid yet"),
        ({"iat": NOW + 100}, "expires before it is issued"),
        ({"sub": None}, "'sub' is no name"),
        ({"sub": " "}, "'sub' is no name"),
        ({"sub": 5}, "'sub' is no name"),
        ({"scope": 5}, "'scope' is neither"),
        ({"scope": ["a", 5]}, "'scope' is neither"),
    ],
)
def test_other_tokens_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        accepted(token(**changes))


def test_the_clocks_may_differ_by_the_skew() -> None:
    claims = Claims(skew_ms=2000)
    assert accepted(token(exp=NOW - 1, iat=NOW - 5), claims)
    assert accepted(token(nbf=NOW + 2), claims)
    for late in ({"exp": NOW - 2, "iat": NOW - 5}, {"nbf": NOW + 3}):
        with pytest.raises(TokenRefused):
            accepted(token(**late), claims)


def test_claims_may_have_other_names_and_scopes_may_be_required() -> None:
    claims = unsecured_claims(
        {
            "unsecuredValidatorPrincipalClaimName": "user",
            "unsecuredValidatorScopeClaimName": "rights",
            "unsecuredValidatorRequiredScope": "read write",
            "unsecuredValidatorAllowableClockSkewMs": "3000",
        }
    )
    assert accepted(token(user="bob", rights=["read", "write", "x"]), claims).principal == "bob"
    assert accepted(token(user="bob", rights="read write", exp=NOW - 2, iat=NOW - 9), claims)
    with pytest.raises(TokenRefused, match="scope"):
        accepted(token(user="bob", rights="read"), claims)
    for wrong in ("x", "-1"):
        with pytest.raises(ValueError, match=r"negative|invalid literal"):
            unsecured_claims({"unsecuredValidatorAllowableClockSkewMs": wrong})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "a.b.c",
        token() + "c2ln",  # a signature that nobody checks
        token({"alg": "RS256"}),
        token({"alg": "NONE"}),
        token({}),
        f"{part([])}.{part({})}.",
        f"{part({'alg': 'none'})}.{part([])}.",
        f"{base64.urlsafe_b64encode(b'[' * 10_000).decode()}.{part({})}.",
        f"{part({'alg': 'none', 'x': 'y' * 20_000})}.{part(VALID)}.",
    ],
)
def test_what_is_no_unsecured_token_is_refused(text: str) -> None:
    with pytest.raises(TokenRefused):
        accepted(text)


@given(st.text(max_size=60) | st.recursive(st.none() | st.floats() | st.text(), st.lists, max_leaves=5).map(part))
def test_garbage_is_refused_and_nothing_of_it_is_in_the_reason(text: str) -> None:
    for message in (text, f"{text}.{text}.", f"{part({'alg': 'none'})}.{text}."):
        with pytest.raises(TokenRefused) as refused:
            accepted(message)
        assert str(refused.value).startswith("it")
