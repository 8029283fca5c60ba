"""The coordinator of each group: looked up once, cached until a request to it fails.

Laws
    There is one FindCoordinator request per group at a time; concurrent callers share its response.
    A coordinator that is not in the metadata yet can be used at once: the response has its address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from rota.client.errors import BrokerError, TimedOut
from rota.client.log import logger
from rota.client.network.error_actions import ErrorAction, error_action
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest

GROUP = 0  # the key type
Find = Callable[[str, FindCoordinatorRequest], Awaitable[Any]]
_log = logger("rota.client.group")


class Coordinators:
    """`await of(group)`, `moved(group, node)`. `find` sends the request to any broker until one responds; `on_address`
    is called with the coordinator's node id, host and port."""

    def __init__(self, find: Find, on_address: Callable[[int, str, int], None]) -> None:
        self._find = find
        self._on_address = on_address
        self._nodes: dict[str, int] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def cached(self, group: str) -> int | None:
        """Return the node id in the cache; None when the coordinator is not known."""
        return self._nodes.get(group)

    async def of(self, group: str) -> int:
        """Return the node id of the group's coordinator. Raises TimedOut, BrokerError."""
        lock = self._locks.setdefault(group, asyncio.Lock())
        async with lock:
            node = self._nodes.get(group)
            if node is None:
                node = self._nodes[group] = await self._find_coordinator(group)
        return node

    def moved(self, group: str, node: int) -> None:
        """Remove `node` from the cache: it does not coordinate the group any more, or is unreachable."""
        if self._nodes.get(group) == node:
            del self._nodes[group]
            _log.info("group coordinator is not there any more; looking for it again", group=group, node=node)

    async def _find_coordinator(self, group: str) -> int:
        answer = await self._find(group, FindCoordinatorRequest(key=group, key_type=GROUP, coordinator_keys=(group,)))
        found = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code != ErrorCode.NONE:
            failure = BrokerError(
                found.error_code, "looking for the coordinator", group=group, detail=found.error_message or None
            )
            if error_action(FindCoordinatorRequest.KEY, found.error_code) is ErrorAction.FATAL:
                raise failure
            raise TimedOut(f"no coordinator for group {group} was found in time: {failure}") from failure
        self._on_address(found.node_id, found.host, found.port)
        _log.info("discovered group coordinator", group=group, node=found.node_id, address=f"{found.host}:{found.port}")
        return int(found.node_id)


def codes(answer: Any) -> list[int]:
    """Return the error codes of a FindCoordinator response of any version."""
    return [coordinator.error_code for coordinator in answer.coordinators] or [answer.error_code]
