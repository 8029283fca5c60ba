"""One event for every hosted machine, in slices: offsets expire, topics are deleted.

Law
    CO2  One call of `advance` does work of about SLICE_COST_MAX and goes on from there: however many machines there
         are, other requests keep their latency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic

from rota.coordinator.runtime.contract import M
from rota.coordinator.runtime.shard import Shard, ShardState

SLICE_COST_MAX: Final = 5_000  # in what `cost` counts, for groups a committed offset: a few milliseconds


class Broadcast(Generic[M]):
    """Steps `event` in every machine of the shards that are ready; `cost` estimates the work of one of them."""

    def __init__(self, shards: Sequence[Shard[M]], event: Any, cost: Callable[[M], int]) -> None:
        self._event, self._cost = event, cost
        self._targets = _targets(shards)

    def advance(self) -> bool:
        """Do one slice of the work; return True when no machine is left."""
        cost = 0
        for shard, machine_id in self._targets:
            machine = shard.machines.get(machine_id) if shard.state is ShardState.READY else None
            if machine is None:
                continue
            cost += self._cost(machine)
            shard.step(machine, self._event)
            if cost >= SLICE_COST_MAX:
                return False
        return True


def _targets(shards: Sequence[Shard[M]]) -> Iterator[tuple[Shard[M], str]]:
    for shard in shards:
        for machine_id in list(shard.machines):
            yield shard, machine_id
