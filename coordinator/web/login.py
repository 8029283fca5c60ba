"""The login of the console: SCRAM users, sessions in memory, and what a user may do.

Laws
    WB20 With rota.http.login nothing of the API and the metrics is served without a session or a password. A session
        ends after SESSION_MS, at a logout, and as soon as the user's credential is changed or removed.
    WB21 The role is decided for each request: with an authorizer DESCRIBE on the cluster lets a user read, ALTER on the
        cluster act, READ on a topic see its records; without one every user may act.
    WB22 Failed attempts are delayed, the same for an unknown user and a wrong password, and bounded (WB25). Passwords
        are compared in a thread, one at a time.
    WB23 A session's cookie is HttpOnly and SameSite=Strict, with TLS Secure; an action needs the session's own token in
        its header as well.
    WB26 A user has at most SESSIONS_PER_USER_MAX sessions: another one ends its oldest. Where there are SESSIONS_MAX,
        the oldest of the user with the most ends, so that no user ends the sessions of others by logging in often.
    WB28 Cookies of other programs on this host, whatever their form, do not hide the session of a user.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Final

import structlog

from rota.coordinator.api.node import Node
from rota.coordinator.security.acl import CLUSTER_NAME
from rota.coordinator.security.operations import Operation, ResourceType
from rota.coordinator.security.principal import USER, Principal
from rota.coordinator.security.sasl.scram import ScramCredential
from rota.coordinator.security.scram_credentials import credentials_of
from rota.coordinator.security.scram_users import ScramUsers
from rota.coordinator.web.attempts import Attempts
from rota.protocol import scram
from rota.protocol.dataclass import dataclass
from rota.protocol.scram import Mechanism

SESSION_MS: Final = 8 * 3_600_000
SESSIONS_MAX: Final = 1_000
SESSIONS_PER_USER_MAX: Final = 20
WAITING_MAX: Final = 16  # passwords of first logins that are compared or wait for it
WAITING_KNOWN_MAX: Final = 64  # and of users who have logged in before from there
PASSWORD_CHARS_MAX: Final = 1_024
TOKEN_BYTES: Final = 32

log = structlog.get_logger("rota.http")


class Role(Enum):
    """What a user may do with the console."""

    NONE = "none"
    READ_ONLY = "read-only"
    OPERATOR = "operator"


class LoginRefused(Exception):
    """`status` is that of the HTTP response; the text is for the user."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True)
class Session:
    """Who is logged in, with the credential that it used."""

    principal: Principal
    mechanism: Mechanism
    credential: ScramCredential
    until_ms: int
    action_token: str = field(default="", repr=False)


class Login:
    """The sessions of one broker. `is_secure`: the listener has TLS."""

    def __init__(self, node: Node, *, is_secure: bool) -> None:
        self._node = node
        self.are_metrics_public = node.config.rota_http_metrics_public
        self.cookie_name = "__Host-rota" if is_secure else "rota"
        self._attributes = f"Path=/; HttpOnly; SameSite=Strict{'; Secure' if is_secure else ''}"
        self._sessions: dict[str, Session] = {}  # the oldest first
        self._users, self._attempts = ScramUsers(node.topics), Attempts()
        self._turn, self._waiting = asyncio.Lock(), 0

    async def log_in(self, user: str, password: str, host: str) -> tuple[str, Session]:
        """Return the value of the session's Set-Cookie header, and the session. Raises LoginRefused."""
        session = await self.authenticate(user, password, host)
        if self.role(session, host) is Role.NONE:
            raise LoginRefused(403, "you may not use the console: it needs DESCRIBE on the cluster")
        name = secrets.token_urlsafe(TOKEN_BYTES)
        self._make_room(session.principal)
        self._sessions[name] = session
        log.info("Login to the console", user=str(session.principal), host=host)
        return f"{self.cookie_name}={name}; {self._attributes}; Max-Age={SESSION_MS // 1000}", session

    def log_out(self, headers: Mapping[str, str]) -> str:
        """End the session; return the value of the Set-Cookie header that removes the cookie."""
        self._end(self._cookie(headers))
        return f"{self.cookie_name}=; {self._attributes}; Max-Age=0"

    def session_of(self, headers: Mapping[str, str]) -> Session | None:
        """WB20. Return the session of a request; None when it has none that is valid."""
        name = self._cookie(headers)
        session = self._sessions.get(name)
        if session is not None and not self.is_valid(session):
            self._end(name)
            return None
        return session

    def _make_room(self, principal: Principal) -> None:
        """WB26."""
        counts = Counter(session.principal for session in self._sessions.values())
        if counts[principal] >= SESSIONS_PER_USER_MAX:
            self._end_oldest(principal)
        elif len(self._sessions) >= SESSIONS_MAX:
            self._end_oldest(counts.most_common(1)[0][0])

    def _end_oldest(self, principal: Principal) -> None:
        self._end(next(name for name, session in self._sessions.items() if session.principal == principal))

    def _end(self, name: str) -> None:
        """End a session, for its streams of events as well."""
        session = self._sessions.pop(name, None)
        if session is not None:
            session.until_ms = self._node.now_ms()

    def is_valid(self, session: Session) -> bool:
        """WB20. Return whether a session has not ended and its credential is still that of the user."""
        known = dict(credentials_of(self._node.topics, session.principal.name))
        return self._node.now_ms() < session.until_ms and known.get(session.mechanism) == session.credential

    def role(self, session: Session, host: str) -> Role:
        """WB21. Return what the user may do now."""
        if self._allows(session, host, Operation.ALTER):
            return Role.OPERATOR
        return Role.READ_ONLY if self._allows(session, host, Operation.DESCRIBE) else Role.NONE

    def is_read_allowed(self, session: Session, host: str, topic: str) -> bool:
        """WB21. Return whether the user may see the records of a topic."""
        return self._allows(session, host, Operation.READ, ResourceType.TOPIC, topic)

    async def of_basic(self, header: str, host: str) -> Session:
        """Return who an Authorization header with a password belongs to. Raises LoginRefused."""
        scheme, _, encoded = header.partition(" ")
        try:
            user, separator, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:
            scheme = separator = user = password = ""
        if scheme.lower() != "basic" or not separator:
            raise LoginRefused(401, "log in")
        return await self.authenticate(user, password, host)

    async def authenticate(self, user: str, password: str, host: str) -> Session:
        """WB22. Return a session for a user with this password. Raises LoginRefused."""
        waiting_max = WAITING_KNOWN_MAX if self._attempts.is_known(user, host) else WAITING_MAX
        is_full = self._waiting >= waiting_max
        attempt = None if is_full else self._attempts.begin(user, host, self._node.now_ms())
        if attempt is None:
            raise LoginRefused(429, "too many attempts: wait a minute")
        self._waiting += 1
        try:
            async with self._turn:
                found = await asyncio.to_thread(self._compare, user, password[: PASSWORD_CHARS_MAX + 1])
        finally:
            self._waiting -= 1
        if found is None:
            log.warning("Login to the console failed", user=user[:100], host=host)
            await asyncio.sleep(self._node.config.connection_failed_authentication_delay_ms / 1000)
            raise LoginRefused(401, "the user or the password is wrong")
        self._attempts.succeeded(attempt)
        mechanism, credential = found
        until_ms = self._node.now_ms() + SESSION_MS
        return Session(Principal(USER, user), mechanism, credential, until_ms, secrets.token_urlsafe(TOKEN_BYTES))

    def _compare(self, user: str, password: str) -> tuple[Mechanism, ScramCredential] | None:
        """Return the credential that a password is for; an unknown user takes as long as a wrong password.

        So does a password that is not UTF-8 (JSON can have half of a surrogate pair): it is wrong.
        """
        sent = password.encode(errors="replace").decode()
        mechanism, credential = self._users.strongest(user)
        salted = scram.salted_password(mechanism, sent, credential.salt, credential.iterations)
        stored = scram.stored_key(mechanism, scram.client_key(mechanism, salted))
        is_right = hmac.compare_digest(stored, credential.stored_key) and sent == password
        is_right = is_right and len(password) <= PASSWORD_CHARS_MAX and not credential.is_made_up
        return (mechanism, credential) if is_right else None

    def _allows(
        self,
        session: Session,
        host: str,
        operation: Operation,
        kind: ResourceType = ResourceType.CLUSTER,
        name: str = CLUSTER_NAME,
    ) -> bool:
        authorizer = self._node.authorizer
        return authorizer is None or authorizer.is_allowed(session.principal, host, operation, kind, name)

    def _cookie(self, headers: Mapping[str, str]) -> str:
        """WB28. Return the name of the session; empty without one."""
        for cookie in headers.get("cookie", "").split(";"):
            name, _, value = cookie.strip().partition("=")
            if name == self.cookie_name and value in self._sessions:
                return value
        return ""
