"""The coordinator of each group, or of each transactional id: looked up once, cached until a request to it fails.

Laws
    There is one FindCoordinator request per group, or transactional id, at a time; concurrent callers share its
    response.
    A coordinator that is not in the metadata yet can be used at once: the response has its address.
    At most KEYS_MAX coordinators are cached; a look-up that has ended leaves nothing else behind.
    NC11 A caller whose time is over learns why there is no coordinator: what the last response to the look-up said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any, Final

from rota.client.errors import BrokerError, TimedOut
from rota.client.log import logger
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.types import address_text
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest

GROUP, TRANSACTION = 0, 1  # the key types
KEYS_MAX: Final = 10_000  # the oldest ones are looked up again: an Admin may ask about ever new groups
NOUNS = {GROUP: "group", TRANSACTION: "transactional id"}
Find = Callable[[str, FindCoordinatorRequest], Awaitable[Any]]
_log = logger("rota.client.group")


@dataclass(slots=True)
class LookUp:
    """The look-up of one key: `callers` wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    callers: int = 0


class Coordinators:
    """`await of(key)`, `moved(key, node)`: the keys are groups or transactional ids, by `key_type`. `find` sends the
    request to any broker until one responds; `on_address` is called with the coordinator's node id, host and port."""

    def __init__(self, find: Find, on_address: Callable[[int, str, int], None], key_type: int = GROUP) -> None:
        self._find = find
        self._key_type = key_type
        self._on_address = on_address
        self._nodes: dict[str, int] = {}
        self._lookups: dict[str, LookUp] = {}
        self._refused: dict[str, int] = {}  # the code of the last response to a look-up that has not succeeded

    def cached(self, key: str) -> int | None:
        """Return the node id in the cache; None when the coordinator is not known."""
        return self._nodes.get(key)

    async def of(self, key: str) -> int:
        """Return the node id of the coordinator. Raises TimedOut, BrokerError."""
        lookup = self._lookups.setdefault(key, LookUp())
        if not lookup.callers:
            self._refused.pop(key, None)
        lookup.callers += 1
        try:
            async with lookup.lock:
                node = self._nodes.get(key)
                if node is None:
                    node = await self._find_coordinator(key)
                    _put(self._nodes, key, node)
        finally:
            lookup.callers -= 1
            if not lookup.callers:
                del self._lookups[key]
        return node

    def moved(self, key: str, node: int) -> None:
        """Remove `node` from the cache: it does not coordinate the key any more, or is unreachable."""
        if self._nodes.get(key) == node:
            del self._nodes[key]
            _log.info(
                f"{NOUNS[self._key_type]} coordinator is not there any more; looking for it again",
                **self._name(key),
                node=node,
            )

    def codes(self, key: str, answer: Any) -> list[int]:
        """Return the error codes of a response to the look-up of that key, which the reason names if it was the last
        one."""
        found = codes(answer)
        _put(self._refused, key, found[0])
        return found

    def reason(self, key: str) -> str:
        """Return why the look-up that has just ended did not succeed; empty when no broker has answered it, nor one
        before that others waited for meanwhile."""
        code = ErrorCode.of(self._refused.get(key, 0))
        return f"no coordinator for {NOUNS[self._key_type]} {key}: {code.name} ({code.text})" if code else ""

    async def _find_coordinator(self, key: str) -> int:
        request = FindCoordinatorRequest(key=key, key_type=self._key_type, coordinator_keys=(key,))
        answer = await self._find(key, request)
        found = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code != ErrorCode.NONE:
            failure = BrokerError(
                found.error_code,
                "looking for the coordinator",
                group=key if self._key_type == GROUP else None,
                detail=found.error_message or None,
            )
            if error_action(FindCoordinatorRequest.KEY, found.error_code) is ErrorAction.FATAL:
                raise failure
            noun = NOUNS[self._key_type]
            raise TimedOut(f"no coordinator for {noun} {key} was found in time: {failure}") from failure
        self._refused.pop(key, None)
        self._on_address(found.node_id, found.host, found.port)
        address = address_text(found.host, found.port)
        _log.info(
            f"discovered {NOUNS[self._key_type]} coordinator", **self._name(key), node=found.node_id, address=address
        )
        return int(found.node_id)

    def _name(self, key: str) -> dict[str, str]:
        return {NOUNS[self._key_type].replace(" ", "_"): key}


def _put(kept: dict[str, int], key: str, value: int) -> None:
    kept[key] = value
    if len(kept) > KEYS_MAX:
        del kept[next(iter(kept))]


def codes(answer: Any) -> list[int]:
    """Return the error codes of a FindCoordinator response of any version."""
    return [coordinator.error_code for coordinator in answer.coordinators] or [answer.error_code]
