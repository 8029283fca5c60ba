"""SASL over a connection, with a broker that speaks it: what is accepted, each refusal, and the renewal of sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client.network.scripted import CLOSE, Scripted, eventually

from rota.protocol import scram
from rota.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest
from rota.protocol.messages.metadata import MetadataRequest
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from rota.transport import authentication
from rota.transport.authentication import STEPS_MAX
from rota.transport.connection import Connection
from rota.transport.errors import AuthenticationFailed, Unreachable
from rota.transport.handshake import connect
from rota.transport.sasl.login import Login, PasswordLogin, TokenLogin
from rota.transport.sasl.tokens import TokenCache
from rota.transport.security import Security

PLAIN = PasswordLogin("PLAIN", "alice", "planted-secret")


def sasl_broker(lifetime_ms: int = 0, **versions: Any) -> Scripted:
    """A broker that accepts everybody; its sessions live so long."""
    broker = Scripted(**versions)
    broker.on(SaslHandshakeRequest, lambda _: SaslHandshakeResponse(mechanisms=("PLAIN",)))
    broker.on(SaslAuthenticateRequest, lambda _: SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms))
    return broker


async def dialled(broker: Scripted, login: Login = PLAIN) -> Connection:
    return await connect(
        "127.0.0.1", broker.port, "1", "me",
        setup_seconds=10, request_seconds=10, ended=lambda _: None, security=Security(None, login),
    )  # fmt: skip


async def over(connection: Connection) -> None:
    connection.end(Unreachable("the test is over"))
    await connection.closed()


async def test_handshake_and_authentication_are_sent_before_other_requests() -> None:
    async with sasl_broker() as broker:
        connection = await dialled(broker)
        await connection.send_request(MetadataRequest(topics=()), 10)
        assert [type(request) for request in broker.requests] == [
            ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest, MetadataRequest,
        ]  # fmt: skip
        assert broker.requests[1].mechanism == "PLAIN"
        assert broker.requests[2].auth_bytes == b"\0alice\0planted-secret"
        assert [header.api_version for header in broker.headers[1:3]] == [1, 2]
        await over(connection)


async def test_scram_ends_with_the_brokers_signature() -> None:
    mechanism, salt = scram.SHA_256, b"salt-salt"
    salted = scram.salted_password(mechanism, "planted-secret", salt, 4096)

    def answer(request: Any) -> SaslAuthenticateResponse:
        if request.auth_bytes.startswith(b"n,,"):
            first = scram.ClientFirst.parse(request.auth_bytes)
            messages[:] = [first.bare, scram.ServerFirst(first.nonce + "x", salt, 4096).encode().decode()]
            return SaslAuthenticateResponse(auth_bytes=messages[1].encode())
        final = scram.ClientFinal.parse(request.auth_bytes)
        message = scram.auth_message(messages[0], messages[1], final.without_proof)
        signature = scram.server_signature(mechanism, scram.server_key(mechanism, salted), message)
        return SaslAuthenticateResponse(auth_bytes=scram.ServerFinal(signature).encode())

    messages: list[str] = []
    async with sasl_broker() as broker:
        broker.on(SaslAuthenticateRequest, answer)
        await over(await dialled(broker, PasswordLogin("SCRAM-SHA-256", "alice", "planted-secret")))
        with pytest.raises(AuthenticationFailed, match=r"SCRAM-SHA-256: .*it does not know the password of the user"):
            await dialled(broker, PasswordLogin("SCRAM-SHA-256", "alice", "planted-other"))


@pytest.mark.parametrize(
    ("handshake", "authenticate", "reply"),
    [
        (
            SaslHandshakeResponse(error_code=33, mechanisms=("A", "B")),
            None,
            "it does not have this mechanism; it has A, B",
        ),
        (SaslHandshakeResponse(error_code=34), None, "its listener has no SASL; security_protocol PLAINTEXT or SSL"),
        (SaslHandshakeResponse(error_code=35), None, r"UNSUPPORTED_VERSION \(35\)"),
        (None, SaslAuthenticateResponse(error_code=58, error_message="no such user"), "with PLAIN: no such user"),
        (None, SaslAuthenticateResponse(error_code=58), "refused the authentication with PLAIN: .+"),
        (None, SaslAuthenticateResponse(auth_bytes=b"more"), "a challenge of 4 bytes, where PLAIN has none"),
    ],
)
async def test_a_refusal_names_broker_mechanism_and_reason(handshake: Any, authenticate: Any, reply: str) -> None:
    async with sasl_broker() as broker:
        if handshake is not None:
            broker.on(SaslHandshakeRequest, lambda _: handshake)
        if authenticate is not None:
            broker.on(SaslAuthenticateRequest, lambda _: authenticate)
        with pytest.raises(AuthenticationFailed, match=f"broker 1 .*{reply}") as failed:
            await dialled(broker)
        assert (failed.value.broker, failed.value.mechanism) == ("1", "PLAIN")
        assert "planted" not in str(failed.value)
        assert not failed.value.retriable


async def test_a_broker_without_sasl_at_all() -> None:
    old = tuple(ApiVersion(api_key=key, min_version=0, max_version=3) for key in (3, 18))
    async with sasl_broker(versions=old) as broker:
        with pytest.raises(AuthenticationFailed, match="does not serve SaslHandshake"):
            await dialled(broker)


async def test_a_broker_that_never_finishes() -> None:
    class Endless:
        mechanism = "PLAIN"

        async def conversation(self) -> Any:
            return self

        def first(self) -> bytes:
            return b"?"

        respond: Callable[..., bytes] = lambda *_: b"?"

    async with sasl_broker() as broker:
        with pytest.raises(AuthenticationFailed, match=f"not finished after {STEPS_MAX} messages"):
            await dialled(broker, Endless())


async def test_a_connection_closed_during_authentication_is_retriable() -> None:
    async with sasl_broker() as broker:
        broker.on(SaslAuthenticateRequest, lambda _: CLOSE)
        with pytest.raises(Unreachable, match="closed the connection"):
            await dialled(broker)


@pytest.fixture
def renewals_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "RENEWAL_SECONDS_MIN", 0.0)


@pytest.mark.usefixtures("renewals_at_once")
async def test_sessions_are_renewed_while_requests_go_on() -> None:
    """No request fails, and none is between a SaslHandshake and its SaslAuthenticate."""
    async with sasl_broker(lifetime_ms=40) as broker:
        connection = await dialled(broker)
        answers = 0
        while broker.counted()[SaslAuthenticateRequest] < 5:
            answers += len(
                await asyncio.gather(*(connection.send_request(MetadataRequest(topics=()), 10) for _ in range(20)))
            )
        assert answers
        kinds = [type(request) for request in broker.requests]
        for at, kind in enumerate(kinds[:-1]):
            assert kind is not SaslHandshakeRequest or kinds[at + 1] is SaslAuthenticateRequest
        assert connection.is_open
        await over(connection)


@pytest.mark.usefixtures("renewals_at_once")
async def test_a_reauthentication_waits_for_pending_responses_and_is_sent_before_queued_requests() -> None:
    """The broker keeps a request while the session has to be renewed; those that come meanwhile go out afterwards."""
    release = asyncio.Event()

    async def late(_: Any) -> Any:
        await release.wait()
        return broker.metadata()

    async with sasl_broker(lifetime_ms=40) as broker:
        connection = await dialled(broker)
        broker.on(MetadataRequest, late)
        slow = asyncio.create_task(connection.send_request(MetadataRequest(topics=()), 10))
        await eventually(lambda: connection._is_held)
        held = [asyncio.create_task(connection.send_request(MetadataRequest(topics=()), 10)) for _ in range(3)]
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(slow, *held)
        kinds = [type(request) for request in broker.requests]
        first = kinds.index(MetadataRequest)
        assert kinds[first : first + 4] == [
            MetadataRequest, SaslHandshakeRequest, SaslAuthenticateRequest, MetadataRequest,
        ]  # fmt: skip
        await over(connection)


@pytest.mark.usefixtures("renewals_at_once")
async def test_a_renewal_that_is_refused_ends_the_connection_with_its_reason() -> None:
    async with sasl_broker(lifetime_ms=40) as broker:
        connection = await dialled(broker)
        broker.on(SaslAuthenticateRequest, lambda _: SaslAuthenticateResponse(error_code=58, error_message="revoked"))
        await connection.closed()
        assert isinstance(connection.failure, AuthenticationFailed)
        with pytest.raises(AuthenticationFailed, match="revoked"):
            await connection.send_request(MetadataRequest(topics=()), 10)


@pytest.mark.usefixtures("renewals_at_once")
async def test_a_provider_that_fails_until_the_session_is_over() -> None:
    """The first token is good; then there is none, and the connection says why it ends."""
    tokens = iter(["first"])

    async def provider() -> str:
        return next(tokens)

    async with sasl_broker(lifetime_ms=40) as broker:
        broker.on(SaslHandshakeRequest, lambda _: SaslHandshakeResponse(mechanisms=("OAUTHBEARER",)))
        connection = await dialled(broker, TokenLogin(TokenCache(provider)))
        await connection.closed()
        assert isinstance(connection.failure, AuthenticationFailed)
        assert "the token provider failed" in str(connection.failure)


@pytest.mark.parametrize("has_token", [True, False])
async def test_no_request_is_sent_in_a_session_that_ends_before_there_is_a_token(*, has_token: bool) -> None:
    """AU3. The broker would hang up on it. It waits for the token; without one it was never sent."""
    release, calls = asyncio.Event(), list[int]()

    async def provider() -> str:
        calls.append(1)
        if len(calls) > 1:
            await release.wait()
            assert has_token
        return "token"

    async with sasl_broker(lifetime_ms=40) as broker:
        broker.on(SaslHandshakeRequest, lambda _: SaslHandshakeResponse(mechanisms=("OAUTHBEARER",)))
        connection = await dialled(broker, TokenLogin(TokenCache(provider)))
        broker.on(SaslAuthenticateRequest, lambda _: SaslAuthenticateResponse())
        await eventually(lambda: connection._is_held)
        waiting = asyncio.create_task(connection.send_request(MetadataRequest(topics=()), 10))
        await eventually(lambda: connection.in_flight == 1)
        release.set()
        if has_token:
            await waiting
            await over(connection)
        else:
            await connection.closed()
            with pytest.raises(AuthenticationFailed, match="the token provider failed"):
                await waiting
        kinds = [type(request) for request in broker.requests][3:]
        assert kinds == [SaslHandshakeRequest, SaslAuthenticateRequest, MetadataRequest] * has_token


async def test_a_session_is_reckoned_from_before_the_broker_has_begun_it() -> None:
    """AU3. Its answer may take a while."""
    release = asyncio.Event()

    async def late(_: Any) -> Any:
        await release.wait()
        return SaslAuthenticateResponse(session_lifetime_ms=1_000_000)

    async with sasl_broker() as broker:
        connection = await dialled(broker)
        broker.on(SaslAuthenticateRequest, late)
        login = authentication._authenticated(connection, PLAIN, await PLAIN.conversation(), 10)
        attempt = asyncio.create_task(login)
        await eventually(lambda: broker.counted()[SaslAuthenticateRequest] == 2)
        arrived_at = asyncio.get_running_loop().time()
        release.set()
        assert (await attempt).began <= arrived_at
        await over(connection)


async def test_closing_ends_the_renewal() -> None:
    async with sasl_broker(lifetime_ms=3_600_000) as broker:
        connection = await dialled(broker)
        (renewal,) = (task for task in asyncio.all_tasks() if task.get_name() == "renew the session with 1")
        await over(connection)
        assert renewal.cancelled()


@pytest.mark.parametrize("lifetime_ms", [-1, 1])
async def test_no_lifetime_makes_a_storm_of_renewals(lifetime_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka refuses those that are less than a second apart, as Rota (SA2); the first one is not one of them."""
    monkeypatch.setattr(authentication, "RENEWAL_SECONDS_MIN", 0.1)
    async with sasl_broker(lifetime_ms) as broker:
        began = asyncio.get_running_loop().time()
        connection = await dialled(broker)
        while asyncio.get_running_loop().time() < began + 0.25:
            await connection.send_request(MetadataRequest(topics=()), 10)
        renewals_max = 1 + (asyncio.get_running_loop().time() - began) / 0.1
        assert broker.counted()[SaslAuthenticateRequest] <= 1 + renewals_max
        await over(connection)


async def test_a_session_that_ends_before_a_renewal_is_allowed_gets_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """AU3. The broker would hang up. The first renewal follows a login, and need not wait."""
    monkeypatch.setattr(authentication, "RENEWAL_SECONDS_MIN", 3600.0)
    calls = list[int]()

    async def provider() -> str:
        calls.append(1)
        return "token"

    async with sasl_broker(lifetime_ms=40) as broker:
        broker.on(SaslHandshakeRequest, lambda _: SaslHandshakeResponse(mechanisms=("OAUTHBEARER",)))
        connection = await dialled(broker, TokenLogin(TokenCache(provider)))
        # the third token is for the second renewal, so the first one has ended
        await eventually(lambda: len(calls) == 3 and connection._is_held)
        assert broker.counted()[SaslAuthenticateRequest] == 2
        waiting = asyncio.create_task(connection.send_request(MetadataRequest(topics=()), 10))
        await eventually(lambda: connection.in_flight == 1)
        await over(connection)
        with pytest.raises(Unreachable, match="the test is over"):
            await waiting
        assert not broker.counted()[MetadataRequest]


async def test_a_refusal_that_is_nested_without_end_is_a_refusal() -> None:
    async def token() -> str:
        return "a.b.c"

    async with sasl_broker() as broker:
        broker.on(SaslAuthenticateRequest, lambda _: SaslAuthenticateResponse(auth_bytes=b"[" * 99_999))
        with pytest.raises(AuthenticationFailed, match="OAUTHBEARER"):
            await dialled(broker, TokenLogin(TokenCache(token)))
