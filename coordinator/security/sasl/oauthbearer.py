"""OAUTHBEARER, the server's side of RFC 7628 (KIP-255): the client sends an access token. Pure.

    client  n,,^Aauth=Bearer TOKEN^A^A
    broker  (nothing: authenticated)        or  {"status":"invalid_token"}
    client                                      ^A
    broker                                      SASL_AUTHENTICATION_FAILED

Law
    OA6 A message has at most MESSAGE_BYTES_MAX bytes, also in a re-authentication. A refusal is the same for every
        invalid token; its reason is in the broker's log alone.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from rota.coordinator.security.oauth.access_token import Clock, TokenRefused, Validator
from rota.coordinator.security.sasl.exchange import AuthenticationFailed, Step
from rota.protocol.dataclass import dataclass

NAME: Final = "OAUTHBEARER"
MESSAGE_BYTES_MAX: Final = 512 * 1024
REFUSED: Final = '{"status":"invalid_token"}'
_SEPARATOR, _DUMMY = "\x01", b"\x01"
_HEADER: Final = re.compile(r"n,(?:a=((?:[^=,\0]|=2C|=3D)+))?,")
_PAIR: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]+)")


@dataclass(frozen=True, slots=True)
class InitialResponse:
    """The first message of a client."""

    token: str = field(repr=False)
    authorization_id: str = ""

    @classmethod
    def parse(cls, message: bytes) -> InitialResponse:
        """Raises AuthenticationFailed."""
        if len(message) > MESSAGE_BYTES_MAX:
            raise _malformed("its message is too long")
        header, *texts = message.decode("latin-1").split(_SEPARATOR)
        gs2 = _HEADER.fullmatch(header)
        pairs = [_PAIR.fullmatch(text) for text in texts[:-2]]
        if gs2 is None or None in pairs or texts[-2:] != ["", ""]:
            raise _malformed()
        values = {pair[1]: pair[2] for pair in pairs if pair is not None}
        scheme, _, token = values.get("auth", "").partition(" ")
        if len(values) != len(pairs) or scheme.lower() != "bearer" or not token.strip():
            raise _malformed()
        return cls(token.strip(), (gs2[1] or "").replace("=2C", ",").replace("=3D", "="))


class OauthbearerExchange:
    """`wall_ms` returns the time of day, in ms since the epoch."""

    def __init__(self, validator: Validator, wall_ms: Clock) -> None:
        self._validator, self._wall_ms = validator, wall_ms
        self._reason = ""  # why the token was refused

    def step(self, token: bytes) -> Step:
        if self._reason:
            raise AuthenticationFailed(REFUSED, self._reason) if token == _DUMMY else _malformed(self._reason)
        first = InitialResponse.parse(token)
        try:
            accepted = self._validator.validate(first.token)
        except TokenRefused as refused:
            self._reason = f"the token is refused: {refused}"
            return Step(REFUSED.encode())
        if first.authorization_id not in ("", accepted.principal):
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({first.authorization_id}) that is "
                f"different from the token's principal name ({accepted.principal})"
            )
        return Step(user=accepted.principal, lifetime_ms=max(0, accepted.expires_ms - self._wall_ms()))


def _malformed(reason: str = "its message is not one of RFC 7628") -> AuthenticationFailed:
    failure = AuthenticationFailed.of_mechanism(NAME)
    return AuthenticationFailed(str(failure), reason)
