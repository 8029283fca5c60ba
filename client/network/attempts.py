"""Retries of one request: what each error action does before the next attempt, until success or the timeout.

Laws
    A failed connection, and a code whose action is RETRY, REFRESH or REDISCOVER, is followed by another attempt after
    a growing wait; REFRESH reads metadata first, REDISCOVER forgets the coordinator first.
    Any other action in the answer ends the attempts, whatever other codes the answer has: a retry cannot succeed.
    TimedOut names the last failure. Closing the cluster ends the attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from rota.client.errors import KafkaError, TimedOut, Unreachable
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.network.targets import AnyNode, Coordinator, Target, TransactionCoordinator

Codes = Callable[[Any], Iterable[int]]  # the error codes in an answer
RETRIED = frozenset({ErrorAction.RETRY, ErrorAction.REFRESH, ErrorAction.REDISCOVER})
_ON_LOST_CONNECTION = {
    Coordinator: ErrorAction.REDISCOVER,
    TransactionCoordinator: ErrorAction.REDISCOVER,
    AnyNode: ErrorAction.RETRY,
}  # what a broken connection means; REFRESH for others


class Requester(Protocol):
    """The part of a Cluster that retries use."""

    is_closed: bool

    async def locate(self, target: Target) -> int: ...
    async def send_request(
        self, node: int, request: Any, *, version_max: int | None = None, version_min: int = 0, lane: str = ""
    ) -> Any: ...
    async def refresh(self) -> object: ...
    def coordinator_moved(self, group: str, node: int) -> None: ...
    def transaction_coordinator_moved(self, transactional_id: str, node: int) -> None: ...
    def backoff_seconds(self, failures: int) -> float: ...
    def describe_failures(self, target: Target | None = None) -> str: ...


class Attempts:
    """One call: `await run(...)`. `how` goes to `Cluster.send_request`: versions, lane."""

    def __init__(
        self, cluster: Requester, target: Target, request: Any | Callable[[int], Any], codes: Codes, how: dict[str, Any]
    ) -> None:
        self._cluster = cluster
        self._target = target
        self._request = request
        self._codes = codes
        self._how = how
        self._node: int | None = None
        self._answer: Any = None
        self._error: KafkaError | None = None

    async def run(self, what: str, timeout_ms: int) -> Any:
        """Return the response. Raises TimedOut, and errors of `Cluster.send_request` but Unreachable and TimedOut."""
        limit = asyncio.timeout(timeout_ms / 1000)
        try:
            async with limit:
                return await self._retry_until_final()
        except TimeoutError:
            if not limit.expired():
                raise
        if self._answer is not None and self._error is None:
            return self._answer
        last = (
            f"; the last failure: {self._error}"
            if self._error is not None
            else f": {self._cluster.describe_failures(self._target)}"
        )
        raise TimedOut(f"{what} did not succeed within {timeout_ms} ms{last}") from self._error

    async def _retry_until_final(self) -> Any:
        failures = 0
        while True:
            actions = await self._attempt()
            if not actions or actions - RETRIED:
                return self._answer
            failures += 1
            if ErrorAction.REDISCOVER in actions and self._node is not None:
                self._forget_coordinator(self._node)
            await asyncio.sleep(self._cluster.backoff_seconds(failures))
            if ErrorAction.REFRESH in actions:
                await self._refresh()

    async def _attempt(self) -> set[ErrorAction]:
        """Make one attempt; return the actions of its error codes, none when it succeeded."""
        self._node = None
        try:
            self._node = await self._cluster.locate(self._target)
            request = self._request(self._node) if callable(self._request) else self._request
            answer = await self._cluster.send_request(self._node, request, **self._how)
        except (Unreachable, TimedOut) as why:
            if self._cluster.is_closed:
                raise
            self._error = why
            return {_ON_LOST_CONNECTION.get(type(self._target), ErrorAction.REFRESH)}
        self._answer, self._error = answer, None
        return (
            {error_action(request.KEY, code) for code in self._codes(answer)} - {ErrorAction.OK}
            if answer is not None
            else set()
        )

    def _forget_coordinator(self, node: int) -> None:
        match self._target:
            case Coordinator(group=group):
                self._cluster.coordinator_moved(group, node)
            case TransactionCoordinator(transactional_id=transactional_id):
                self._cluster.transaction_coordinator_moved(transactional_id, node)

    async def _refresh(self) -> None:
        try:
            await self._cluster.refresh()
        except (Unreachable, TimedOut) as why:
            self._error = why
