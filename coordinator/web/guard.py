"""Which HTTP requests are served: the checks before any page or API, and the headers on every response.

Laws
    WB1 A request whose Host is neither an address nor a known name is refused: a page of another site whose name was
        made to resolve to this machine (DNS rebinding) reads nothing.
    WB2 An action needs the header `X-Rota-Action`, a body of type application/json and, where the browser says where
        the request comes from, this very site: no other site can act for a user (CSRF).
    WB3 A read-only console refuses every action.
    WB20 Where a login is needed, API and metrics are served with a session or a password alone, an action with a
        session of an operator and the token of that session.
    WB4 Bodies, headers, connections and the time that a peer takes are bounded. An action whose body comes in chunks is
        refused, whatever length it says: it is the chunks that would count.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from rota.coordinator.network.owner import address

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rota.coordinator.web.login import Login, Session

BODY_BYTES_MAX: Final = 64 * 1024
SEND_SECONDS_MAX: Final = 30.0  # until a peer has taken what was sent
BODY_SECONDS_MAX: Final = 10.0
METHODS: Final = frozenset({"GET", "HEAD", "POST"})
ACTION_HEADER: Final = "x-rota-action"
SESSION_PATHS: Final = "/session"
EVENTS_PATH: Final = "/api/events"
SESSION: Final = "rota.session"  # in the scope of a request that a session serves
CONTENT_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = (
    (b"content-security-policy", CONTENT_POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

Headers = dict[str, str]


def refusal(method: str, headers: Headers, hosts: Collection[str], *, is_read_only: bool) -> tuple[int, str] | None:
    """Return (HTTP status, reason) of a request that is not served; None for one that is."""
    if method not in METHODS:
        return 405, "only GET, HEAD and POST are served"
    host = headers.get("host", "")
    if not is_known_host(host, hosts):
        return 421, "the Host header names another host; rota.http.allowed.hosts lists further names"
    return _action_refusal(headers, host, is_read_only) if method == "POST" else None


def _action_refusal(headers: Headers, host: str, is_read_only: bool) -> tuple[int, str] | None:
    if is_read_only:
        return 403, "this console is read-only (rota.http.read.only)"
    if ACTION_HEADER not in headers:
        return 403, "an action needs the header X-Rota-Action"
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
    if (origin is not None and origin not in (f"http://{host}", f"https://{host}")) or site not in (
        "same-origin",
        "none",
    ):
        return 403, "the request comes from another site"
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return 415, "an action has a body of type application/json"
    length = headers.get("content-length", "")
    if "transfer-encoding" in headers or not length.isdecimal() or int(length) > BODY_BYTES_MAX:
        return 413, f"an action has a body of at most {BODY_BYTES_MAX} bytes, and says its length"
    return None


def host_of(scope: Scope) -> str:
    """Return the address of the peer, as the listeners for Kafka's clients see it: ACLs name it so."""
    return address(scope.get("client"))[0]


async def login_refusal(login: Login, scope: Scope, headers: Headers) -> tuple[int, str] | None:
    """WB20. Return (HTTP status, reason) of a request that its user may not make; note the session in the scope."""
    from rota.coordinator.web.login import LoginRefused, Role

    path, host = scope["path"], host_of(scope)
    if not path.startswith("/api/") and (path != "/metrics" or login.are_metrics_public):
        return None
    session = login.session_of(headers)
    if session is None and scope["method"] != "POST" and "authorization" in headers:
        try:
            session = await login.of_basic(headers["authorization"], host)
        except LoginRefused as refused:
            return refused.status, str(refused)
    if session is None:
        return 401, "log in"
    role = login.role(session, host)
    if role is Role.NONE or (scope["method"] == "POST" and role is not Role.OPERATOR):
        return 403, "you may not do this: reading needs DESCRIBE on the cluster, acting ALTER"
    if scope["method"] == "POST" and not hmac.compare_digest(
        headers.get(ACTION_HEADER, "").encode(), session.action_token.encode()
    ):
        return 403, "the header X-Rota-Action is not the token of the session"
    scope[SESSION] = session
    return None


def is_known_host(host: str, hosts: Collection[str]) -> bool:
    """Return whether this Host header is an address, `localhost` or one of `hosts`."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and not host.endswith("]") else host
    name = name.strip("[]").lower()
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name in hosts
    return True


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], *, is_read_only: bool, login: Login | None = None) -> None:
        self._app, self._is_read_only, self._login = app, is_read_only, login
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        is_read_only = self._is_read_only and not scope["path"].startswith(SESSION_PATHS)
        refused = refusal(scope["method"], headers, self._hosts, is_read_only=is_read_only)
        if refused is None and self._login is not None:
            refused = await login_refusal(self._login, scope, headers)

        async def bounded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            elif scope["path"] == EVENTS_PATH and self._has_ended(scope.get(SESSION), host_of(scope)):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                raise ConnectionAbortedError("the session has ended")
            async with asyncio.timeout(SEND_SECONDS_MAX):
                await send(message)

        if refused is not None:
            await _refuse(bounded_send, *refused)
            return
        await self._app(scope, receive, bounded_send)

    def _has_ended(self, session: Session | None, host: str) -> bool:
        """WB20. Return whether a stream of events has outlived its session."""
        if self._login is None or session is None:
            return False
        return not self._login.is_valid(session) or self._login.role(session, host).value == "none"


async def _refuse(send: Send, status: int, reason: str) -> None:
    import json

    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
