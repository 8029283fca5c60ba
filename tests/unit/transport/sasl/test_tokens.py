import asyncio
import base64
import json
from collections.abc import Awaitable, Callable

import pytest

from rota.transport.errors import AuthenticationFailed
from rota.transport.sasl import tokens
from rota.transport.sasl.tokens import Token, TokenCache, jwt_expiry


class Source:
    """A provider whose tokens are valid for `seconds`; `calls` counts. `now` is the clock."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self.calls, self.now = seconds, 0, 1_000.0

    async def token(self) -> Token:
        self.calls += 1
        await asyncio.sleep(0)
        return Token(f"t{self.calls}", None if self.seconds is None else self.now + self.seconds)


async def test_a_token_is_used_again_until_four_fifths_of_its_life() -> None:
    source = Source(100)
    cache = TokenCache(source, lambda: source.now)
    assert (await cache.token()).value == "t1"
    source.now += 79
    assert (await cache.token()).value == "t1"
    source.now += 2
    assert (await cache.token()).value == "t2"


async def test_a_token_without_a_known_end_is_used_once() -> None:
    source = Source(None)
    cache = TokenCache(source, lambda: source.now)
    assert [(await cache.token()).value for _ in range(2)] == ["t1", "t2"]


async def test_connections_share_one_call() -> None:
    source = Source(100)
    cache = TokenCache(source.token, lambda: source.now)
    tokens = await asyncio.gather(*(cache.token() for _ in range(5)))
    assert {token.value for token in tokens} == {"t1"}


async def test_a_failure_has_no_secret_and_is_not_kept() -> None:
    answers = iter([ValueError("planted"), "bad token", "good"])

    async def provider() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    cache = TokenCache(provider)
    for _ in range(2):
        with pytest.raises(AuthenticationFailed, match="the token provider failed with ValueError") as failed:
            await cache.token()
        assert "planted" not in str(failed.value)
    assert (await cache.token()).value == "good"


def jwt(claims: object) -> str:
    return f"h.{base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.s"


@pytest.mark.parametrize(
    ("token", "expiry"),
    [
        (jwt({"exp": 12}), 12.0),
        (jwt({}), None),
        (jwt([]), None),
        ("opaque", None),
        ("a.?.c", None),
        ("a.b.c", None),
        pytest.param(jwt({"exp": 10**400}), None, id="no float"),
        (jwt({"exp": float("inf")}), None),
        (jwt({"exp": float("nan")}), None),
        pytest.param("h." + base64.urlsafe_b64encode(b"[" * 99_999).decode() + ".s", None, id="nested without end"),
    ],
)
def test_the_end_of_a_jwt(token: str, expiry: float | None) -> None:
    assert jwt_expiry(token) == expiry


def test_a_token_is_in_no_repr() -> None:
    assert "planted" not in repr(Token("planted"))


async def test_a_provider_that_hangs_fails_and_is_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "PROVIDER_SECONDS", 0.01)
    calls = 0

    async def provider() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.Event().wait()
        return "good"

    cache = TokenCache(provider)
    async with asyncio.timeout(10):
        with pytest.raises(AuthenticationFailed, match="the token provider has no token after 0 s"):
            await cache.token()
        assert (await cache.token()).value == "good"


async def test_the_extensions_of_aiokafkas_providers_are_sent() -> None:
    class Provider:
        async def token(self) -> str:
            return "t"

        def extensions(self) -> dict[str, str]:
            return {"logicalCluster": "lkc-1"}

    assert (await TokenCache(Provider()).token()).extensions == {"logicalCluster": "lkc-1"}


async def test_a_provider_that_is_not_async_is_told_so() -> None:
    """Those of kafka-python and librdkafka are not."""
    with pytest.raises(AuthenticationFailed, match="the token provider is not async"):
        await TokenCache(lambda: "t").token()


# ---- cancellation


async def waiting_for(
    provider: Callable[[], Awaitable[str]], waiters: int
) -> tuple[TokenCache, list[asyncio.Task[Token]]]:
    """A cache, and tasks that wait for the token of its provider, which has been called."""
    cache = TokenCache(provider)
    tasks = [asyncio.create_task(cache.token()) for _ in range(waiters)]
    for _ in range(3):
        await asyncio.sleep(0)
    return cache, tasks


async def cancel(task: asyncio.Task[Token]) -> None:
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


@pytest.mark.parametrize("turns", range(4))
async def test_the_call_of_the_provider_ends_with_its_last_waiter(turns: int) -> None:
    """At each step, also before the first one."""
    before = asyncio.all_tasks()
    waiter = asyncio.create_task(TokenCache(asyncio.Event().wait).token())
    for _ in range(turns):
        await asyncio.sleep(0)
    await cancel(waiter)
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_cancelled_waiter_takes_the_token_from_no_other() -> None:
    go_on = asyncio.Event()

    async def provider() -> str:
        await go_on.wait()
        return "good"

    _, [first, second] = await waiting_for(provider, 2)
    await cancel(first)
    go_on.set()
    async with asyncio.timeout(10):
        assert (await second).value == "good"


async def test_after_a_cancelled_call_the_provider_is_called_anew() -> None:
    calls = 0

    async def provider() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.Event().wait()
        return "good"

    cache, [waiter] = await waiting_for(provider, 1)
    waiter.cancel()
    again = asyncio.create_task(cache.token())  # while the first call is still ending
    async with asyncio.timeout(10):
        assert (await again).value == "good"
    assert calls == 2


async def test_a_provider_that_is_cancelled_inside_fails_and_cancels_no_connection() -> None:
    async def provider() -> str:
        raise asyncio.CancelledError

    with pytest.raises(AuthenticationFailed, match="the call of the token provider was cancelled"):
        await TokenCache(provider).token()
