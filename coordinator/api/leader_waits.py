"""Delay responses that name leaders while one of these leaders is suspected to be dead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from rota.coordinator.api.node import Node
from rota.coordinator.scheduling.delayed_reply import DelayedReply

T = TypeVar("T")


def when_leaders_live(node: Node, leaders: Callable[[], Iterable[int]], answer: Callable[[], T]) -> T | DelayedReply[T]:
    """Return `answer()`: at once if it names no other broker, else when none of `leaders()` is suspected any more.

    Later requests of the connection are served meanwhile.
    """
    lost, own_id = node.lost_brokers, node.config.node_id
    if lost is None or all(leader in (own_id, -1) for leader in leaders()):
        return answer()

    def is_settled() -> bool:
        return not any(leader in lost for leader in leaders())

    return lost.wait(is_settled).map(lambda _: answer())
