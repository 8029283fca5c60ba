"""Sticky, when all members subscribe to the same topics: everybody keeps what fits into a fair share. Pure.

Laws
    The numbers of partitions of any two members differ by one at most.
    As many partitions stay where they were as that allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from operator import itemgetter

from rota.client.types import TopicPartition

Shares = dict[str, list[TopicPartition]]


def share_equally(partitions: Sequence[TopicPartition], owned: Mapping[str, Sequence[TopicPartition]]) -> Shares:
    """`partitions`: all there are, in order. `owned`: what each member had; a partition has one owner at most."""
    kept = _keep(owned, *divmod(len(partitions), len(owned)))
    taken = {partition for mine in kept.values() for partition in mine}
    _deal([partition for partition in partitions if partition not in taken], kept, len(partitions) // len(kept))
    return kept


def _keep(owned: Mapping[str, Sequence[TopicPartition]], least: int, richer: int) -> Shares:
    """Each member's own up to its share: `least`, and one more for the first `richer` that have so many."""
    kept: Shares = {}
    for member_id in sorted(owned):
        mine = sorted(owned[member_id], key=itemgetter(1, 0))
        may_be_richer = len(mine) > least and richer > 0
        richer -= may_be_richer
        kept[member_id] = mine[: least + may_be_richer]
    return kept


def _deal(free: Sequence[TopicPartition], kept: Shares, least: int) -> None:
    """In turns to those below their share; when there are none, one more to each of the others."""
    below = deque(member_id for member_id in kept if len(kept[member_id]) < least)
    even = deque(member_id for member_id in kept if len(kept[member_id]) == least)
    for partition in free:
        member_id = below.popleft() if below else even.popleft()
        kept[member_id].append(partition)
        if len(kept[member_id]) < least:
            below.append(member_id)
        elif len(kept[member_id]) == least:
            even.append(member_id)
