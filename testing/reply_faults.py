"""Applies the rules to the requests of a broker: wraps the handlers that its connections look up.

Only the test kit installs it, on a started broker: `rota serve` has no way to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from types import NoneType
from typing import Any, Final

from rota.coordinator.api.routes import SERVES
from rota.coordinator.network.call import Call, CloseConnection
from rota.coordinator.network.connection import Connection
from rota.coordinator.network.connections import Connections
from rota.coordinator.network.dispatch import ApiHandler
from rota.coordinator.network.replies import Slot
from rota.coordinator.observe.counters import now_ns
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.registry import APIS
from rota.testing.reply_rules import Action, ReplyRule, ReplyRules

MEMBERS_MAX = 10_000  # whose connections are known; beyond it those of closed connections are forgotten


class ReplyFaults:
    """The faults of one broker's connections."""

    def __init__(self, rules: ReplyRules) -> None:
        self._rules = rules
        self._connections: Connections | None = None
        self._handler_of: Callable[[int], ApiHandler] | None = None
        self._correlation_id = 0
        self._members: dict[tuple[str, str], int] = {}  # group and member id -> the connection of its last request

    def install(self, connections: Connections) -> None:
        """Apply the rules to these connections from now on. Called before the first client connects."""
        self._connections, self._handler_of = connections, connections.handler_of
        connections.handler_of = self._wrapped
        self._members.clear()

    def is_connected(self, group_id: str, member_id: str) -> bool:
        """Whether the connection is open on which this member sent its last request."""
        connection_id = self._members.get((group_id, member_id))
        return connection_id is not None and self._connection(connection_id) is not None

    def close_connections(self, client_id: str = "*") -> int:
        """Cut off the connections of clients whose id matches; return how many."""
        matching = [each for each in self._open() if fnmatchcase(each.client_id, client_id)]
        for connection in matching:
            connection.abort()
        return len(matching)

    # ---- inside

    def _open(self) -> list[Connection]:
        return [] if self._connections is None else list(self._connections)

    def _connection(self, connection_id: int) -> Connection | None:
        return next((each for each in self._open() if each.id == connection_id), None)

    def _wrapped(self, api: int) -> ApiHandler:
        assert self._handler_of is not None
        handler = self._handler_of(api)
        return handler._replace(decode=partial(self._decode, handler), serve=partial(self._serve, handler))

    def _decode(self, handler: ApiHandler, frame: bytes, at: int = 0) -> tuple[Any, int]:
        """Decode a request, which is served next, and note its correlation id."""
        self._correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        return handler.decode(frame, at)

    def _serve(self, handler: ApiHandler, node: Any, call: Call, request: Any) -> Any:
        self._note_member(call, request)
        rule = self._rules.match(handler.name, call.client_id)
        if rule is None:
            return handler.serve(node, call, request)
        match rule.action:
            case Action.CLOSE:
                raise CloseConnection("a fault of the test kit")
            case Action.ERROR if not rule.performed:
                return _after(rule.delay_ms, _refusal(rule, handler, request))
        correlation_id = self._correlation_id
        reply = handler.serve(node, call, request)
        if reply is None:  # Produce with acks=0
            return None
        inner = reply if isinstance(reply, DelayedReply) else _answered(reply)
        outer: DelayedReply[Any] = DelayedReply(mutes=inner.mutes)
        outer.on_abandon(inner.abandon)
        inner.then(partial(self._apply, rule, handler, correlation_id, call, request, outer))
        return outer

    def _apply(
        self,
        rule: ReplyRule,
        handler: ApiHandler,
        correlation_id: int,
        call: Call,
        request: Any,
        outer: DelayedReply[Any],
        value: Any,
    ) -> None:
        """The reply is known: pass it on as the rule says."""
        match rule.action:
            case Action.DELAY:
                asyncio.get_running_loop().call_later(rule.delay_ms / 1000, outer.answer, value)
            case Action.DUPLICATE:
                outer.answer(value)
                asyncio.get_running_loop().call_soon(self._send, call.connection_id, handler, correlation_id, value)
            case Action.ERROR:
                outer.answer(_refusal(rule, handler, request))
            case Action.DROP:
                connection = self._connection(call.connection_id)
                if connection is not None:
                    connection.abort()
            case _:  # STALL: the reply never leaves
                pass

    def _send(self, connection_id: int, handler: ApiHandler, correlation_id: int, value: Any) -> None:
        connection = self._connection(connection_id)
        if connection is not None and not isinstance(value, Exception):
            connection.queue_reply(Slot(handler, correlation_id, 0, now_ns()), value)

    def _note_member(self, call: Call, request: Any) -> None:
        member_id = getattr(request, "member_id", "")
        group_id = getattr(request, "group_id", "")
        if member_id and group_id:
            if len(self._members) >= MEMBERS_MAX:
                ids = {connection.id for connection in self._open()}
                self._members = {member: used for member, used in self._members.items() if used in ids}
            self._members[group_id, member_id] = call.connection_id


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "api": (str,),
    "client_id": (str,),
    "times": (int, NoneType),
    "skip": (int,),
    "probability": (int, float),
    "delay_ms": (int, float),
    "error": (str,),
    "performed": (bool,),
}
# 0 would be a fault that never happens: a test with it passes whatever the application does
_RANGES: Final[dict[str, tuple[float, float]]] = {
    "times": (1, 2**31),
    "skip": (0, 2**31),
    "probability": (0, 1),
    "delay_ms": (0, 3_600_000),
}
_API_NAMES: Final = tuple(APIS[key].name for key in SERVES)


def check_rule(rule: ReplyRule) -> None:
    """Raise ValueError or TypeError for a rule that could not be applied, as any program may send it."""
    for name, kinds in _KINDS.items():
        value = getattr(rule, name)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError(f"{name} cannot be {value!r}")
    for name, (least, most) in _RANGES.items():
        value = getattr(rule, name)
        if value is not None and not least <= value <= most:  # NaN is in no range
            raise ValueError(f"{name} is {value}; it is a number from {least} to {most}")
    if not any(fnmatchcase(known, rule.api) for known in _API_NAMES):
        close = ", ".join(get_close_matches(rule.api, _API_NAMES)) or ", ".join(_API_NAMES)
        raise ValueError(f"no API of the broker matches {rule.api!r}; there are {close}")
    if rule.action is Action.ERROR:
        from rota.testing.error_replies import check_api

        check_api(rule.api)
        if rule.error not in ErrorCode.__members__:
            raise ValueError(f"Kafka has no error {rule.error!r}")


def _refusal(rule: ReplyRule, handler: ApiHandler, request: Any) -> Any:
    from rota.testing.error_replies import error_reply  # a broker without such a fault does not load these messages

    return error_reply(handler.name, handler.version, request, ErrorCode[rule.error])


def _after(delay_ms: int, reply: Any) -> Any:
    """Return the reply, or one that is given later; requests behind it are performed meanwhile."""
    if not delay_ms:
        return reply
    delayed: DelayedReply[Any] = DelayedReply()
    asyncio.get_running_loop().call_later(delay_ms / 1000, delayed.answer, reply)
    return delayed


def _answered(reply: Any) -> DelayedReply[Any]:
    known: DelayedReply[Any] = DelayedReply()
    known.answer(reply)
    return known
