from __future__ import annotations

import pytest

from rota.coordinator.security.sasl.exchange import AuthenticationFailed, Step
from rota.coordinator.security.sasl.plain import PlainExchange, users_of

WRONG = "Authentication failed: Invalid username or password"
USERS = {"alice": "planted-password", "bob": ""}
GENERAL = "invalid credentials with SASL mechanism PLAIN"


@pytest.mark.parametrize("token", [b"\0alice\0planted-password", b"alice\0alice\0planted-password"])
def test_the_right_password(token: bytes) -> None:
    assert PlainExchange(USERS).step(token) == Step(user="alice")


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong", WRONG),
        (b"\0nobody\0planted-password", WRONG),
        (b"\0nobody\0x", WRONG),
        (b"bob\0alice\0planted-password", "Client requested an authorization id that is different from username"),
        (b"\0bob\0", GENERAL),
        (b"\0\0x", GENERAL),
        (b"alice", GENERAL),
        (b"\0alice\0planted-password\0", GENERAL),
        (b"\0\xff\0x", GENERAL),
    ],
)
def test_anything_else_is_refused_with_kafkas_text(token: bytes, text: str) -> None:
    with pytest.raises(AuthenticationFailed, match=text) as refused:
        PlainExchange(USERS).step(token)
    assert "planted" not in str(refused.value)


def test_users_of_a_login_module() -> None:
    assert users_of({"username": "admin", "password": "x", "user_alice": "a"}) == {"alice": "a"}
