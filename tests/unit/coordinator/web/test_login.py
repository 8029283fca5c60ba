"""The login of the console: a broker with SCRAM users, an authorizer, and HTTP."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.unit.certificates import Certificates, certificates
from tests.unit.coordinator.web.conftest import PROPERTIES, Answer, Http

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.security.acl import Entry, Permission, ResourcePattern
from rota.coordinator.security.acl_nodes import add
from rota.coordinator.security.operations import Operation
from rota.coordinator.security.principal import Principal
from rota.coordinator.web.attempts import FAILURES_PER_SOURCE_MAX
from rota.coordinator.web.login import SESSION_MS, SESSIONS_MAX, SESSIONS_PER_USER_MAX, WAITING_MAX

__all__ = ["certificates"]
LOGIN = {
    **PROPERTIES,
    "rota.http.login": "true",
    "rota.scram.bootstrap.users": "root=planted-root,reader=planted-reader,nobody=planted-nobody",
    "authorizer.class.name": "Any",
    "super.users": "User:root;User:ANONYMOUS",
    "connection.failed.authentication.delay.ms": "0",
}
TOPIC = {"topic": "t", "partitions": 1}


@asynccontextmanager
async def broker_with(**properties: str) -> AsyncIterator[tuple[Broker, Http]]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    async with Broker(BrokerConfig({**LOGIN, **named}), memory=True) as broker:
        for operation, pattern in (
            (Operation.DESCRIBE, "CLUSTER:LITERAL:kafka-cluster"),
            (Operation.READ, "TOPIC:LITERAL:t"),
        ):
            entry = Entry(Permission.ALLOW, operation, "User:reader", "*")
            await add(broker.topics, ResourcePattern.parse(pattern), [entry])
        yield broker, Http(broker.console_url)


async def log_in(http: Http, user: str, password: str | None = None) -> tuple[Answer, dict[str, str]]:
    """The answer, and the headers of requests in the session."""
    answer = await http.post("/session/login", {"user": user, "password": password or f"planted-{user}"})
    if answer.status != 200:
        return answer, {}
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return answer, {"cookie": cookie, "x_rota_action": answer.json["action_token"]}


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def test_nothing_is_shown_without_a_login() -> None:
    async with broker_with() as (_, http):
        for path in (
            "/api/cluster",
            "/api/topics",
            "/api/events",
            "/api/openapi.json",
            "/metrics",
            "/api/records?topic=t",
        ):
            assert (await http.get(path)).status == 401, path
            assert (await http.get(path, cookie="rota=made-up")).status == 401, path
        assert (await http.post("/api/actions/create-topic", TOPIC)).status == 401
        for path in ("/", "/app.js", "/healthz", "/readyz"):
            assert (await http.get(path)).status == 200, path
        assert (await http.get("/session")).json == {
            "needs_login": True, "user": None, "role": None, "action_token": "1",
        }  # fmt: skip


async def test_the_acls_decide_the_role() -> None:
    async with broker_with() as (_, http):
        answer, root = await log_in(http, "root")
        assert (answer.json["user"], answer.json["role"]) == ("root", "operator")
        assert (await http.post("/api/actions/create-topic", TOPIC, **root)).status == 200
        assert (await http.get("/api/cluster", **root)).json["is_read_only"] is False
        answer, reader = await log_in(http, "reader")
        assert answer.json["role"] == "read-only"
        assert (await http.get("/api/topics", **reader)).status == 200
        assert (await http.get("/api/cluster", **reader)).json["is_read_only"] is True
        assert (await http.post("/api/actions/create-topic", {**TOPIC, "topic": "u"}, **reader)).status == 403
        assert (await http.get("/api/records?topic=t", **reader)).status == 200
        await http.post("/api/actions/create-topic", {**TOPIC, "topic": "u"}, **root)
        assert (await http.get("/api/records?topic=u", **reader)).status == 403
        answer, _ = await log_in(http, "nobody")
        assert answer.status == 403


async def test_a_permission_that_is_taken_away_counts_at_once() -> None:
    async with broker_with() as (broker, http):
        _, reader = await log_in(http, "reader")
        assert (await http.get("/api/topics", **reader)).status == 200
        deny = Entry(Permission.DENY, Operation.DESCRIBE, "User:reader", "*")
        await add(broker.topics, ResourcePattern.parse("CLUSTER:LITERAL:kafka-cluster"), [deny])
        assert (await http.get("/api/topics", **reader)).status == 403


async def test_a_host_that_is_denied_is_denied_at_a_console_of_both_families() -> None:
    """An IPv4 address is seen as one of IPv6 there; for the listeners of Kafka's clients it is the same host."""
    both = {"rota_http_listener": "[::]:0", "rota_allow_plaintext_beyond_loopback": "true"}
    async with broker_with(**both) as (broker, http):
        http.host = "127.0.0.1"
        _, reader = await log_in(http, "reader")
        assert (await http.get("/api/topics", **reader)).status == 200
        deny = Entry(Permission.DENY, Operation.DESCRIBE, "User:reader", "127.0.0.1")
        await add(broker.topics, ResourcePattern.parse("CLUSTER:LITERAL:kafka-cluster"), [deny])
        assert (await http.get("/api/topics", **reader)).status == 403


async def test_a_session_ends_with_a_logout_a_new_password_or_the_time() -> None:
    async with broker_with() as (broker, http):
        _, first = await log_in(http, "root")
        logged_out = await http.post("/session/logout", {}, **first)
        assert "Max-Age=0" in logged_out.headers["set-cookie"]
        assert (await http.get("/api/topics", **first)).status == 401
        _, second = await log_in(http, "root")
        await broker.topics.configs.update(ConfigKind.USERS, "root", lambda before: {})
        assert (await http.get("/api/topics", **second)).status == 401
        _, third = await log_in(http, "reader")
        login = broker.http._server.app.login  # type: ignore[union-attr]
        assert login is not None
        (session,) = login._sessions.values()
        assert session.until_ms - broker.now_ms() <= SESSION_MS
        session.until_ms = broker.now_ms()
        assert (await http.get("/api/topics", **third)).status == 401
        assert not login._sessions


async def test_the_cookie_is_safe_and_an_action_needs_the_token_of_its_session() -> None:
    async with broker_with() as (_, http):
        answer, root = await log_in(http, "root")
        attributes = answer.headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
        _, other = await log_in(http, "root")
        for token in ("1", "", other["x_rota_action"]):
            refused = await http.post("/api/actions/create-topic", TOPIC, **{**root, "x_rota_action": token})
            assert refused.status == 403
        evil = await http.post("/session/login", {"user": "root", "password": "planted-root"}, origin="http://evil")
        assert evil.status == 403  # nobody is logged in as somebody else by another site
        assert "unsafe" not in answer.headers["content-security-policy"]


async def test_a_wrong_password_and_an_unknown_user_look_the_same_and_are_bounded() -> None:
    async with broker_with() as (_, http):
        with capture_logs() as logs:
            answers = [(await log_in(http, user, "planted-wrong"))[0] for user in ("root", "unknown")]
        assert [(answer.status, answer.body) for answer in answers] == [(401, answers[0].body)] * 2
        assert "planted" not in str(logs)
        for _ in range(FAILURES_PER_SOURCE_MAX - 2):
            await log_in(http, "root", "planted-wrong")
        assert (await log_in(http, "root"))[0].status == 429
        assert (await http.get("/metrics", authorization=basic("root", "planted-root"))).status == 429


async def test_a_password_that_is_no_utf8_is_a_wrong_one_and_counts() -> None:
    """WB22. JSON can have half of a surrogate pair."""
    async with broker_with() as (_, http):
        for _ in range(FAILURES_PER_SOURCE_MAX):
            assert (await log_in(http, "root", "planted-root\ud800"))[0].status == 401
        assert (await log_in(http, "root", "planted-root"))[0].status == 429


async def test_metrics_have_a_password_or_are_public() -> None:
    async with broker_with() as (_, http):
        assert (await http.get("/metrics", authorization=basic("reader", "planted-reader"))).status == 200
        assert (await http.get("/api/topics", authorization=basic("reader", "planted-reader"))).status == 200
        assert (await http.get("/metrics", authorization=basic("reader", "planted-wrong"))).status == 401
        assert (await http.get("/metrics", authorization=basic("nobody", "planted-nobody"))).status == 403
        for wrong in ("Basic", "Basic ??", "Bearer x", "Basic YQ=="):
            assert (await http.get("/metrics", authorization=wrong)).status in (401, 429)
        acting = await http.post("/api/actions/create-topic", TOPIC, authorization=basic("root", "planted-root"))
        assert acting.status == 401
    async with broker_with(rota_http_metrics_public="true") as (_, http):
        assert (await http.get("/metrics")).status == 200
        assert (await http.get("/api/topics")).status == 401


async def test_events_end_with_the_session() -> None:
    async with broker_with() as (_, http):
        _, root = await log_in(http, "root")
        reader, writer = await asyncio.open_connection(http.host, http.port)
        head = f"GET /api/events HTTP/1.1\r\nhost: {http.host}\r\nconnection: close\r\ncookie: {root['cookie']}\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(20):
            await reader.readuntil(b"\r\n\r\n")
            await http.post("/session/logout", {}, **root)
            _, other = await log_in(http, "root")
            await http.post("/api/actions/create-topic", TOPIC, **other)
            rest = await reader.read()
        assert b"changed" not in rest
        writer.close()


async def test_without_an_authorizer_every_user_may_act() -> None:
    async with broker_with(authorizer_class_name="") as (_, http):
        _, credentials = await log_in(http, "nobody")
        assert (await http.post("/api/actions/create-topic", TOPIC, **credentials)).status == 200


async def test_read_only_is_for_everybody() -> None:
    async with broker_with(rota_http_read_only="true") as (_, http):
        _, root = await log_in(http, "root")
        assert root
        assert (await http.post("/api/actions/create-topic", TOPIC, **root)).status == 403


async def test_sessions_are_bounded() -> None:
    """WB26. A user ends its own sessions by logging in often, never those of others."""
    async with broker_with() as (broker, http):
        _, root = await log_in(http, "root")
        _, oldest = await log_in(http, "reader")
        login = broker.http._server.app.login  # type: ignore[union-attr]
        assert login is not None
        for _ in range(SESSIONS_PER_USER_MAX):
            await log_in(http, "reader")
        assert len(login._sessions) == SESSIONS_PER_USER_MAX + 1
        assert (await http.get("/api/topics", **oldest)).status == 401
        assert (await http.get("/api/topics", **root)).status == 200


async def test_the_user_with_the_most_sessions_makes_room() -> None:
    async with broker_with() as (broker, http):
        _, reader = await log_in(http, "reader")
        login = broker.http._server.app.login  # type: ignore[union-attr]
        assert login is not None
        (session,) = login._sessions.values()
        for number in range(SESSIONS_MAX - 1):
            other = login._sessions[str(number)] = copy(session)
            other.principal = Principal("User", str(min(number, SESSIONS_MAX - 9)))
        await log_in(http, "root")
        assert len(login._sessions) == SESSIONS_MAX
        assert str(SESSIONS_MAX - 9) not in login._sessions
        assert (await http.get("/api/topics", **reader)).status == 200


async def test_attempts_at_one_time_are_bounded_as_those_one_after_another() -> None:
    async with broker_with() as (_, http):
        answers = await asyncio.gather(*(log_in(http, "root", "planted-wrong") for _ in range(2 * WAITING_MAX)))
        statuses = Counter(answer.status for answer, _ in answers)
        assert statuses == {401: FAILURES_PER_SOURCE_MAX, 429: 2 * WAITING_MAX - FAILURES_PER_SOURCE_MAX}


async def test_a_user_who_was_here_before_is_not_locked_out_by_the_failures_of_others() -> None:
    async with broker_with() as (_, http):
        await log_in(http, "root")
        for _ in range(FAILURES_PER_SOURCE_MAX + 1):
            await log_in(http, "reader", "planted-wrong")
        assert (await log_in(http, "reader"))[0].status == 429
        assert (await log_in(http, "root"))[0].status == 200


def tls_of(path: Path) -> dict[str, str]:
    return {"rota_http_tls": "true", "ssl_keystore_type": "PEM", "ssl_keystore_location": str(path)}


async def test_tls_has_secure_cookies(certificates: Certificates) -> None:
    async with broker_with(**tls_of(certificates.server.keystore)) as (broker, http):
        assert broker.console_url.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=str(certificates.ca))
        reader, writer = await asyncio.open_connection(http.host, http.port, ssl=context)
        body = b'{"user": "root", "password": "planted-root"}'
        head = (
            f"POST /session/login HTTP/1.1\r\nhost: {http.host}\r\nconnection: close\r\nx-rota-action: 1\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = (await reader.read()).decode()
        assert answer.startswith("HTTP/1.1 200")
        assert "set-cookie: __Host-rota=" in answer
        assert "; Secure" in answer
        writer.close()


async def test_new_certificates_count_for_the_next_connection(certificates: Certificates, tmp_path: Path) -> None:
    store = tmp_path / "console.pem"
    store.write_bytes(certificates.server.keystore.read_bytes())
    context = ssl.create_default_context(cafile=str(certificates.ca))
    context.check_hostname = False

    async def name(http: Http) -> str:
        _, writer = await asyncio.open_connection(http.host, http.port, ssl=context)
        shown = writer.get_extra_info("peercert")
        writer.close()
        return str(shown["subjectAltName"])

    async with broker_with(**tls_of(store)) as (_, http):
        assert "127.0.0.1" in await name(http)
        store.write_bytes(certificates.elsewhere.keystore.read_bytes())
        assert "elsewhere.example" in await name(http)


async def test_a_certificate_that_is_demanded_on_a_running_broker_is_demanded_of_the_next_connection(
    certificates: Certificates,
) -> None:
    stores = {**tls_of(certificates.server.keystore), "ssl_truststore_location": str(certificates.ca)}

    async def is_served(http: Http, keystore: Path | None) -> bool:
        context = ssl.create_default_context(cafile=str(certificates.ca))
        if keystore is not None:
            context.load_cert_chain(keystore)
        try:
            reader, writer = await asyncio.open_connection(http.host, http.port, ssl=context)
            writer.write(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")
            return (await reader.read()).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    async with broker_with(**stores) as (broker, http):
        assert await is_served(http, None)
        broker.config.reconfigure({}, {"listener.name.http.ssl.client.auth": "required"})
        assert not await is_served(http, None)
        assert not await is_served(http, certificates.untrusted.keystore)
        assert await is_served(http, certificates.client.keystore)


def test_a_login_in_plain_text_beyond_the_loopback_is_refused() -> None:
    with pytest.raises(ConfigRefused, match=r"rota.http.listener.*in plain text"):
        BrokerConfig({**LOGIN, "rota.http.listener": "0.0.0.0:0"})


@pytest.mark.parametrize("other", ['prefs={"a": 1}', "a[b]=1", "flag", 'x="1; 2"', "rota=stale", "rotary=1"])
async def test_cookies_of_other_programs_on_this_host_do_not_hide_the_session(other: str) -> None:
    """Cookies belong to a host, not to a port, and programs put all kinds of text into them."""
    async with broker_with() as (_, http):
        _, session = await log_in(http, "root")
        for cookie in (f"{other}; {session['cookie']}", f"{session['cookie']}; {other}"):
            assert (await http.get("/api/cluster", cookie=cookie)).status == 200, cookie
