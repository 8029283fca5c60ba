"""Access tokens as JSON Web Tokens (RFC 7519): the claims that a broker reads, and tokens without a signature. Pure.

Law
    OA2 A token counts from `nbf` to `exp`, give or take the clock skew, and names its principal in a text that is not
        blank. Nothing of a token is in the text of a refusal.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from rota.protocol.dataclass import dataclass

HEADER_CHARS_MAX: Final = 16 * 1024  # encoded
EXPIRES_MS_MAX: Final = 1 << 52
TIME_S_MAX: Final = EXPIRES_MS_MAX // 1000 + 1  # larger times in a token count as this one

Clock = Callable[[], int]  # ms since the epoch


class TokenRefused(Exception):
    """The token is not valid. The text is for the broker's log; it has nothing of the token."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What a valid token says: the name of the principal, and its end in ms since the epoch."""

    principal: str
    expires_ms: int


@dataclass(frozen=True, slots=True)
class Claims:
    """Which claims are read, and how. `required_scopes` have to be among those of the token."""

    principal: str = "sub"
    scope: str = "scope"
    skew_ms: int = 0
    requires_issue_time: bool = False
    required_scopes: frozenset[str] = frozenset()

    def read(self, claims: Mapping[str, Any], now_ms: int) -> AccessToken:
        """OA2. Return what the claims say. Raises TokenRefused."""
        expires_ms = _time_ms(claims, "exp")
        if expires_ms is None:
            raise TokenRefused("it has no time of expiry (exp)")
        if now_ms - self.skew_ms >= expires_ms:
            raise TokenRefused("it has expired")
        self._check_begin(claims, now_ms, expires_ms)
        self._check_scopes(claims.get(self.scope))
        principal = claims.get(self.principal)
        if not isinstance(principal, str) or not principal.strip() or not _is_utf8(principal):
            raise TokenRefused(f"its claim {self.principal!r} is no name")
        return AccessToken(principal, min(expires_ms, EXPIRES_MS_MAX))

    def _check_begin(self, claims: Mapping[str, Any], now_ms: int, expires_ms: int) -> None:
        issued_ms, begins_ms = _time_ms(claims, "iat"), _time_ms(claims, "nbf")
        if issued_ms is None and self.requires_issue_time:
            raise TokenRefused("it has no time of issue (iat)")
        if issued_ms is not None and issued_ms > expires_ms:
            raise TokenRefused("it expires before it is issued")
        if max(issued_ms or 0, begins_ms or 0) > now_ms + self.skew_ms:
            raise TokenRefused("it is not valid yet; do the clocks agree?")

    def _check_scopes(self, scope: object) -> None:
        scopes = [scope] if isinstance(scope, str) else scope or []
        if not isinstance(scopes, list) or not all(isinstance(each, str) and each.strip() for each in scopes):
            raise TokenRefused(f"its claim {self.scope!r} is neither a text nor a list of texts")
        if not self.required_scopes <= {word for each in scopes for word in each.split()}:
            raise TokenRefused("it lacks a scope that is required")


class Validator(Protocol):
    """Decides about tokens."""

    def validate(self, token: str) -> AccessToken:
        """Return what a valid token says. Raises TokenRefused."""


class UnsecuredValidator:
    """OA1. Accepts tokens without a signature (`alg` none), which anyone can forge: for tests."""

    def __init__(self, claims: Claims, wall_ms: Clock) -> None:
        self._claims, self._wall_ms = claims, wall_ms

    def validate(self, token: str) -> AccessToken:
        header, separator, rest = token.partition(".")
        payload, second, signature = rest.partition(".")
        if not separator or not second or signature or len(header) > HEADER_CHARS_MAX:
            raise TokenRefused("it is no token without a signature")
        if _decode(header).get("alg") != "none":
            raise TokenRefused("its algorithm is not none")
        return self._claims.read(_decode(payload), self._wall_ms())


def unsecured_claims(options: Mapping[str, str]) -> Claims:
    """Return which claims count by the options of Kafka's OAuthBearerLoginModule. Raises ValueError."""
    prefix = "unsecuredValidator"
    skew_ms = int(options.get(f"{prefix}AllowableClockSkewMs", "0"))
    if skew_ms < 0:
        raise ValueError(f"{prefix}AllowableClockSkewMs is negative")
    return Claims(
        principal=options.get(f"{prefix}PrincipalClaimName", "sub"),
        scope=options.get(f"{prefix}ScopeClaimName", "scope"),
        skew_ms=skew_ms,
        required_scopes=frozenset(options.get(f"{prefix}RequiredScope", "").split()),
    )


def _decode(part: str) -> Mapping[str, Any]:
    try:
        value = json.loads(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise TokenRefused("it is no JSON Web Token") from None
    if not isinstance(value, dict):
        raise TokenRefused("it is no JSON Web Token")
    return value


def _is_utf8(text: str) -> bool:
    """Return whether a text can be sent: JSON can have half of a surrogate pair, UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a time of the claims in ms; None when it has none. Raises TokenRefused."""
    seconds = claims.get(name)
    if seconds is None:
        return None
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or (isinstance(seconds, float) and not math.isfinite(seconds)):
        raise TokenRefused(f"its claim {name!r} is no time")
    return int(min(max(seconds, -TIME_S_MAX), TIME_S_MAX) * 1000)  # 1e308 s in ms would be infinite
