"""Bearer tokens of OAUTHBEARER: from the caller's provider, kept while they are valid.

Laws
    Connections that need a token at the same time share one call of the provider.
    A token is used again until REUSED of its lifetime are over; a token whose end is not known is used once.
    The call ends with the last connection that waits for it: a cancelled one takes the token from no other.
    A provider has PROVIDER_SECONDS for a token; the next connection calls one again that had none by then.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import inspect
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Final

from rota.protocol.dataclass import dataclass
from rota.transport.errors import AuthenticationFailed
from rota.transport.sasl.oauthbearer import check_token
from rota.transport.shielded import shielded

REUSED: Final = 0.8
PROVIDER_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Token:
    """`expires_at` is in seconds since the epoch; None: read from the token when it is a JWT, else not known."""

    value: str = field(repr=False)
    expires_at: float | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


# an asynchronous function without arguments, or an object with such a method `token` and, as aiokafka's token provider
# has it, perhaps a method `extensions`: the SASL extensions of tokens that have none of their own
Provider = Callable[[], Awaitable["str | Token"]]


@dataclass(slots=True)
class _Call:
    """A call of the provider under way, and the number of connections that wait for it."""

    task: asyncio.Task[Token]
    waiting: int = 0


class TokenCache:
    """`await cache.token()`. `clock` returns seconds since the epoch; `extensions`: of tokens without any."""

    def __init__(
        self, provider: Any, clock: Callable[[], float] = time.time, extensions: Mapping[str, str] | None = None
    ) -> None:
        self._provider: Provider = getattr(provider, "token", provider)
        self._extensions: Callable[[], Mapping[str, str]] = getattr(provider, "extensions", lambda: extensions or {})
        self._clock = clock
        self._token: Token | None = None
        self._reused_until = 0.0
        self._call: _Call | None = None

    async def token(self) -> Token:
        """A valid token. Raises AuthenticationFailed when the provider fails."""
        if self._token is not None and self._clock() < self._reused_until:
            return self._token
        if self._call is None or self._call.task.done():
            task = asyncio.get_running_loop().create_task(self._fetched(), name="fetch an OAuth token")
            self._call = _Call(task)
        return await self._result(self._call)

    async def _result(self, call: _Call) -> Token:
        call.waiting += 1
        try:
            return await shielded(call.task)
        except asyncio.CancelledError as cause:
            if call.waiting == 1:
                self._cancel(call)
            if not call.task.cancelled() or _is_cancelled():
                raise
            problem = "the call of the token provider was cancelled"
            raise AuthenticationFailed(f"no OAuth token: {problem}", mechanism="OAUTHBEARER") from cause
        finally:
            call.waiting -= 1

    def _cancel(self, call: _Call) -> None:
        call.task.cancel()
        if self._call is call:
            self._call = None

    async def _fetched(self) -> Token:
        try:
            async with asyncio.timeout(PROVIDER_SECONDS) as limit:
                token = await self._called()
            now = self._clock()
            expires_at = token.expires_at if token.expires_at is not None else jwt_expiry(token.value)
            reused_until = 0.0 if expires_at is None else now + (expires_at - now) * REUSED
        except AuthenticationFailed:
            raise
        except Exception as cause:
            # the provider's own text is left to the cause: it may have credentials
            late = f"has no token after {PROVIDER_SECONDS:.0f} s"
            problem = f"the token provider {late if limit.expired() else f'failed with {type(cause).__name__}'}"
            raise AuthenticationFailed(f"no OAuth token: {problem}", mechanism="OAUTHBEARER") from cause
        self._token, self._reused_until = token, reused_until
        return token

    async def _called(self) -> Token:
        """The provider's next token. Raises what the provider raises, and ValueError."""
        call = self._provider()
        if not inspect.isawaitable(call):
            raise AuthenticationFailed("no OAuth token: the token provider is not async", mechanism="OAUTHBEARER")
        given = await call
        token = given if isinstance(given, Token) else Token(given)
        if not token.extensions:
            token = dataclasses.replace(token, extensions=dict(self._extensions()))
        check_token(token.value, token.extensions)
        return token


def _is_cancelled() -> bool:
    """Whether the current task itself was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def jwt_expiry(token: str) -> float | None:
    """Return the `exp` claim of a JWT in seconds since the epoch, without any verification; None when there is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        expiry = claims.get("exp") if isinstance(claims, dict) else None
        seconds = float(expiry) if isinstance(expiry, int | float) else math.nan
    except (ValueError, OverflowError, RecursionError):
        return None
    return seconds if math.isfinite(seconds) else None
