"""The renewal of a session (KIP-368), the requests that wait for it and the connection attempt are cancelled at every
suspension point.

Law AU13: the connection ends with a retriable reason and nothing is written to a broker that waits for the end of an
authentication; or it goes on and each request has its response.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.network.scripted import Scripted, eventually
from tests.unit.suspensions import BEFORE_THE_FIRST_STEP, TEN_S, cancel, started_in, task_cancelled_at, tasks_of_ours
from tests.unit.transport.test_authentication import dialled, over, sasl_broker

from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest
from rota.transport import authentication
from rota.transport.connection import Connection
from rota.transport.errors import Unreachable
from rota.transport.sasl.login import PasswordLogin, TokenLogin
from rota.transport.sasl.tokens import TokenCache

SESSION_MS = 30


@pytest.fixture(autouse=True)
def renewals_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "RENEWAL_SECONDS_MIN", 0.0)


def requests_in_authentications(broker: Scripted) -> set[type]:
    """The requests that came between a handshake and the end of its authentication."""
    kinds = [type(request) for request in broker.requests]
    return {after for kind, after in pairwise(kinds) if kind is SaslHandshakeRequest}


async def send_request(connection: Connection) -> MetadataResponse:
    async with asyncio.timeout(TEN_S):
        response: MetadataResponse = await connection.send_request(MetadataRequest(topics=()), TEN_S)
    return response


async def token() -> str:
    await asyncio.sleep(0)
    return "a.b.c"


LOGINS: dict[str, Any] = {
    "PLAIN": lambda: PasswordLogin("PLAIN", "alice", "planted-secret"),
    "OAUTHBEARER": lambda: TokenLogin(TokenCache(token)),
}


async def ended(before: set[asyncio.Task[Any]], broker: Scripted) -> None:
    """No task and no socket is left."""
    await eventually(lambda: tasks_of_ours() == before and not broker._writers)


def test_every_task_of_the_connections_is_cancelled_in_a_test() -> None:
    """`TokenCache._fetched`: tests/unit/transport/sasl/test_tokens.py, law AU12."""
    assert started_in(Path(authentication.__file__).parent) == {"authenticate", "TokenCache._fetched"}


@pytest.mark.parametrize("mechanism", LOGINS)
async def test_a_connection_whose_renewal_is_cancelled_ends_with_the_reason(mechanism: str) -> None:
    for suspension in count(BEFORE_THE_FIRST_STEP):
        async with sasl_broker(lifetime_ms=SESSION_MS) as broker:
            before = tasks_of_ours()
            with task_cancelled_at("_renew_until_end", 0, suspension) as reached:
                connection = await dialled(broker, LOGINS[mechanism]())
                with suppress(Unreachable):
                    async with asyncio.timeout(TEN_S):
                        while reached or broker.counted()[SaslAuthenticateRequest] < 4:
                            await asyncio.gather(*(send_request(connection) for _ in range(3)))
            if not reached:
                await over(connection)
                break
            assert isinstance(connection.failure, Unreachable)
            assert "the renewal of the session with broker 1 was cancelled" in str(connection.failure)
            await asyncio.wait_for(connection.closed(), TEN_S)
            assert requests_in_authentications(broker) <= {SaslAuthenticateRequest}
            await ended(before, broker)
            again = await dialled(broker, LOGINS[mechanism]())
            await send_request(again)
            await over(again)
    assert suspension > 3


async def test_a_connection_whose_renewal_fails_by_a_mistake_ends_with_the_reason() -> None:
    class Mistaken(PasswordLogin):
        calls = 0

        async def conversation(self) -> Any:
            self.calls += 1
            if self.calls > 1:
                raise ZeroDivisionError
            return await super().conversation()

    async with sasl_broker(lifetime_ms=SESSION_MS) as broker:
        connection = await dialled(broker, Mistaken("PLAIN", "alice", "planted-secret"))
        await asyncio.wait_for(connection.closed(), TEN_S)
        assert isinstance(connection.failure, Unreachable)
        assert "the renewal of the session with broker 1 failed with ZeroDivisionError" in str(connection.failure)


async def test_a_request_that_is_cancelled_while_it_waits_for_a_renewal_delays_no_other() -> None:
    for suspension in count(BEFORE_THE_FIRST_STEP):
        release = asyncio.Event()

        async def late(request: Any, release: asyncio.Event = release) -> SaslAuthenticateResponse:
            if broker.counted()[SaslAuthenticateRequest] > 1:
                await release.wait()
            return SaslAuthenticateResponse(session_lifetime_ms=SESSION_MS)

        async with sasl_broker() as broker:
            broker.on(SaslAuthenticateRequest, late)
            before = tasks_of_ours()
            connection = await dialled(broker)
            await eventually(lambda: broker.counted()[SaslAuthenticateRequest] > 1)
            others = [asyncio.create_task(send_request(connection)) for _ in range(2)]
            asyncio.get_running_loop().call_later(0.002, release.set)
            reached, _ = await cancel(send_request(connection), suspension)
            responses = await asyncio.gather(*others, send_request(connection))
            assert len(responses) == 3
            assert connection.is_open
            assert requests_in_authentications(broker) == {SaslAuthenticateRequest}
            await over(connection)
            await ended(before, broker)
        if not reached:
            break
    assert suspension > 0


@pytest.mark.parametrize("mechanism", LOGINS)
async def test_an_attempt_to_connect_that_is_cancelled_leaves_no_socket_and_no_renewal(mechanism: str) -> None:
    for suspension in count(BEFORE_THE_FIRST_STEP):
        async with sasl_broker(lifetime_ms=SESSION_MS) as broker:
            before, login = tasks_of_ours(), LOGINS[mechanism]()
            reached, connection = await cancel(dialled(broker, login), suspension)
            if connection is not None:
                await over(connection)
            await ended(before, broker)
            again = await dialled(broker, login)
            await send_request(again)
            await over(again)
        if not reached:
            break
    assert suspension > 3
