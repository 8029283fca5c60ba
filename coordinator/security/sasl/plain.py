"""PLAIN, RFC 4616: the client sends its name and its password, in one token. Pure.

Users and passwords are those of the listener's JAAS text: `user_alice="secret"`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from rota.coordinator.security.sasl.exchange import ANOTHER_AUTHORIZATION_ID, AuthenticationFailed, Step

NAME = "PLAIN"
USER_OPTION = "user_"
_REFUSED = "Authentication failed: Invalid username or password"


class PlainExchange:
    """`passwords` by user name. An unknown user takes as long as a wrong password."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def step(self, token: bytes) -> Step:
        authorization_id, user, password = _parse(token)
        expected = self._passwords.get(user)
        is_right = hmac.compare_digest(password.encode(), (expected or "").encode())
        if expected is None or not is_right:
            raise AuthenticationFailed(_REFUSED)
        if authorization_id not in ("", user):
            raise AuthenticationFailed(ANOTHER_AUTHORIZATION_ID)
        return Step(user=user)


def users_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return the passwords by user name in the options of a PlainLoginModule."""
    return {name.removeprefix(USER_OPTION): text for name, text in options.items() if name.startswith(USER_OPTION)}


def _parse(token: bytes) -> tuple[str, str, str]:
    try:
        parts = token.decode().split("\0")
    except UnicodeDecodeError:
        raise AuthenticationFailed.of_mechanism(NAME) from None
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise AuthenticationFailed.of_mechanism(NAME)
    return parts[0], parts[1], parts[2]
