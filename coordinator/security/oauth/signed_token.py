"""Tokens with a signature: verified with a key of the key set by PyJWT, never with what the token itself proposes.

Law
    OA1 A token without a signature is refused, and one whose algorithm is none of the key's: `none`, or an HMAC keyed
        with a public key. Only Kafka's unsecured validator, configured by name, accepts `alg` none.
    OA3 A token has to be for the expected audience and of the expected issuer; one that has an audience is refused
        where none is expected.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import jwt
from jwt.exceptions import PyJWTError

from rota.coordinator.security.oauth.access_token import HEADER_CHARS_MAX, AccessToken, Claims, Clock, TokenRefused

if TYPE_CHECKING:
    from rota.coordinator.security.oauth.key_set import KeySet

# The times and the subject are checked with the broker's own clock and claim names.
_OPTIONS: Final[Any] = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_sub": False,
    "verify_jti": False,
}
_REASONS: Final = {
    "InvalidSignatureError": "its signature is wrong",
    "InvalidAlgorithmError": "its algorithm is not one of its key",
    "InvalidAudienceError": "it is for another audience (sasl.oauthbearer.expected.audience)",
    "InvalidIssuerError": "it is of another issuer (sasl.oauthbearer.expected.issuer)",
    "MissingRequiredClaimError": "it lacks the audience or the issuer that is expected",
}


class SignedValidator:
    """Accepts what a key of `keys` has signed. No `audiences`, no `issuer`: not checked."""

    def __init__(
        self,
        keys: KeySet,
        claims: Claims,
        wall_ms: Clock,
        *,
        audiences: Collection[str] = (),
        issuer: str | None = None,
    ) -> None:
        self._keys, self._claims, self._wall_ms = keys, claims, wall_ms
        self._audiences, self._issuer = list(audiences) or None, issuer or None

    def validate(self, token: str) -> AccessToken:
        if len(token.partition(".")[0]) > HEADER_CHARS_MAX:
            raise TokenRefused("its header is too long")
        try:
            header = jwt.get_unverified_header(token)
            if "crit" in header:
                raise TokenRefused("it demands an extension (crit)")
            key = self._keys.find(header.get("kid"), str(header.get("alg")))
            claims = jwt.decode(
                token,
                key.key,
                algorithms=key.algorithms,
                audience=self._audiences,
                issuer=self._issuer,
                options=_OPTIONS,
            )
        except (PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise TokenRefused(_REASONS.get(type(error).__name__, "it is no JSON Web Token that can be read")) from None
        return self._claims.read(claims, self._wall_ms())
