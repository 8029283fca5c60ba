"""The authentication of one connection as a state machine: SaslHandshake, SaslAuthenticate, the end of a session. Pure.

    VERSIONS ──ApiVersions──▶ HANDSHAKE ──SaslHandshake──▶ TOKENS ──last token──▶ OPEN ──SaslHandshake──▶ TOKENS …
        └────────────────────SaslHandshake────────────────▶┘ └──refusal──▶ FAILED

Laws
    SA1 Before a connection is OPEN it is served ApiVersions, once and at most UNKNOWN_VERSIONS_MAX times in a version
        that the broker does not know, SaslHandshake and SaslAuthenticate; anything else closes it.
        A SaslHandshake in the place of a token is answered, and closes it as well.
    SA2 A session that has ended serves nothing but a re-authentication, by the same mechanism and as the same
        principal. While a re-authentication is under way and the session has not ended, requests are served. One that
        begins within REAUTHENTICATION_MS after the last is refused, as in Kafka (KIP-368).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from typing import Final

from rota.coordinator.security.principal import ANONYMOUS, USER, Principal
from rota.coordinator.security.sasl.exchange import AuthenticationFailed, Exchange, Step
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
UNKNOWN_VERSIONS_MAX: Final = 3  # of ApiVersions; a client falls back to 0, or to what the answer names
REAUTHENTICATION_MS: Final = 1_000  # at least, between the beginnings of two; a password may cost much to check
MESSAGE_CHARS_MAX: Final = 1_000  # of the text of a refusal, which may have a name that the client chose
ILLEGAL: Final = "SaslAuthenticate request received after successful authentication"


class State(Enum):
    """What a connection expects next."""

    VERSIONS = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake"
    TOKENS = "SaslAuthenticate"
    OPEN = "any request"
    FAILED = "nothing"


class NotAllowed(Exception):
    """The connection is closed without a reply; the text says why, for the log."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a token, without an error with an empty message, as Kafka's. `lifetime_ms` 0: no end."""

    code: int = ErrorCode.NONE
    message: str = ""
    token: bytes = field(default=b"", repr=False)
    lifetime_ms: int = 0


class SaslSession:
    """`exchanges` makes the exchange of each enabled mechanism, `session_ms_max` is the longest session of each.

    0, or none: a session ends only with the token that it began with.
    """

    def __init__(
        self, exchanges: Mapping[str, Callable[[], Exchange]], session_ms_max: Mapping[str, int] | None = None
    ) -> None:
        self._exchanges, self._session_ms_max = exchanges, session_ms_max or {}
        self._exchange: Exchange | None = None
        self._unknown_versions = 0
        self._reauthenticates_ms = 0  # not before
        self.mechanism = ""  # that of the last SaslHandshake
        self.state = State.VERSIONS
        self.principal = ANONYMOUS
        self.expires_ms: int | None = None  # the end of the session; None: it does not end
        self.expects_bare_token = False  # after SaslHandshake v0: frames are tokens, without any header
        self.failure = ""  # why the client was refused, for the log

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The enabled mechanisms."""
        return tuple(self._exchanges)

    @property
    def has_principal(self) -> bool:
        """Whether the client has authenticated; during a re-authentication as well."""
        return self.principal is not ANONYMOUS

    def admit(self, key: int, *, is_known_version: bool, now_ms: int) -> None:
        """SA1, SA2. Check that a request of this API may be served now. Raises NotAllowed."""
        if self.state is State.FAILED:
            raise NotAllowed("a request after a failed authentication")
        is_early = self.has_principal and now_ms < self._reauthenticates_ms
        if (key == SASL_HANDSHAKE and not is_early) or (key == SASL_AUTHENTICATE and self.state is State.TOKENS):
            return
        if self.has_principal:
            if self.expires_ms is not None and now_ms >= self.expires_ms:
                raise NotAllowed("its session has ended, and it did not authenticate again")
        elif key == API_VERSIONS and self.state is State.VERSIONS:
            self._unknown_versions += not is_known_version
            if self._unknown_versions > UNKNOWN_VERSIONS_MAX:
                raise NotAllowed("many requests of ApiVersions in unknown versions")
            self.state = State.HANDSHAKE if is_known_version else State.VERSIONS
        else:
            raise NotAllowed(f"a request of API {key} before authentication, where {self.state.value} is expected")

    def handshake(self, mechanism: str, version: int, now_ms: int) -> int:
        """Choose a mechanism; return the error code of the reply."""
        if self.state is State.TOKENS:
            self._fail("a SaslHandshake where SaslAuthenticate is expected")
            return ErrorCode.ILLEGAL_SASL_STATE
        if self.has_principal:
            if self.expires_ms is None or not version or now_ms < self._reauthenticates_ms:
                return ErrorCode.ILLEGAL_SASL_STATE
            self._reauthenticates_ms = now_ms + REAUTHENTICATION_MS
        if self.has_principal and mechanism != self.mechanism:
            self._fail("re-authentication with another mechanism")
            raise NotAllowed(self.failure)
        if mechanism not in self._exchanges:
            self._fail(f"the mechanism {mechanism[:40]!r} is not enabled")
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        self.mechanism, self._exchange = mechanism, self._exchanges[mechanism]()
        self.state, self.expects_bare_token = State.TOKENS, version == 0
        return ErrorCode.NONE

    def authenticate(self, token: bytes, now_ms: int) -> Outcome:
        """Read a token of the client."""
        if self.state is not State.TOKENS or self._exchange is None:
            return Outcome(ErrorCode.ILLEGAL_SASL_STATE, ILLEGAL)
        try:
            step = self._exchange.step(token)
            return Outcome(token=step.token) if not step.user else self._open(step, now_ms)
        except AuthenticationFailed as refused:
            reason = f": {refused.reason}" if refused.reason else ""
            self._fail(f"authentication by {self.mechanism} failed{reason}")
            return Outcome(ErrorCode.SASL_AUTHENTICATION_FAILED, str(refused)[:MESSAGE_CHARS_MAX])

    def _open(self, step: Step, now_ms: int) -> Outcome:
        principal = Principal(USER, step.user)
        if self.has_principal and principal != self.principal:
            raise AuthenticationFailed(
                f"Cannot change principals during re-authentication from {_kafka(self.principal)}: {_kafka(principal)}"
            )
        self.principal, self.state, self._exchange, self.expects_bare_token = principal, State.OPEN, None, False
        lifetimes_ms = [
            each for each in (self._session_ms_max.get(self.mechanism) or None, step.lifetime_ms) if each is not None
        ]
        self.expires_ms = now_ms + min(lifetimes_ms) if lifetimes_ms else None
        return Outcome(token=step.token, lifetime_ms=min(lifetimes_ms, default=0))

    def _fail(self, why: str) -> None:
        self.state, self.failure, self._exchange, self.expects_bare_token = State.FAILED, why, None, False


def _kafka(principal: Principal) -> str:
    return f"{principal.type}.{principal.name}"
