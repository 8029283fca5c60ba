"""One event for every hosted machine, in slices: offsets expire, topics are deleted.

Law
    CO2  One call of `advance` does work of about SLICE_COST_MAX, and the next call continues, so that other requests
         keep their latency with any number of machines. A shard that is loading, or whose records of the event are not
         committed, is reported as missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic

from rota.coordinator.runtime.contract import M
from rota.coordinator.runtime.shard import Shard, ShardState
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode

SLICE_COST_MAX: Final = 5_000  # in units of `cost`, for groups one committed offset: a few milliseconds


class Broadcast(Generic[M]):
    """Steps `event` in every machine of the shards that are ready; `cost` estimates the work of one of them."""

    def __init__(
        self,
        shards: Sequence[Shard[M]],
        event: Any,
        cost: Callable[[M], int],
        missed: Callable[[Shard[M]], None] = lambda _: None,
    ) -> None:
        """`missed` is called for each shard in which the event has to be stepped again when it is ready."""
        self._event, self._cost, self._missed = event, cost, missed
        self._steps = self._step_all(shards)

    def advance(self) -> bool:
        """Do one slice of the work; return True when no machine is left."""
        cost = 0
        for step_cost in self._steps:
            cost += step_cost
            if cost >= SLICE_COST_MAX:
                return False
        return True

    def _step_all(self, shards: Sequence[Shard[M]]) -> Iterator[int]:
        """Step the machines one by one; yield the cost of each."""
        for shard in shards:
            term = shard.term
            for machine in each_machine(shard):
                cost = self._cost(machine)
                shard.step(machine, self._event)
                yield cost
            self._await_commit(shard, term)

    def _await_commit(self, shard: Shard[M], term: int) -> None:
        if shard.state is not ShardState.READY or shard.term != term:
            self._missed(shard)
            return

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                self._missed(shard)

        reply = shard.when_committed(ErrorCode.NONE, lambda error: error)
        if isinstance(reply, DelayedReply):
            reply.then(done)


def each_machine(shard: Shard[M]) -> Iterator[M]:
    """Iterate over the machines of a shard that is ready, until it is lost.

    Machines may be created (which are left out) and removed between two.
    """
    term = shard.term
    for machine_id in list(shard.machines) if shard.state is ShardState.READY else ():
        machine = shard.machines.get(machine_id) if shard.term == term else None
        if machine is not None:
            yield machine
