"""The world of `machines_world` in which the replicas of the data topic are reassigned again and again.

Laws
    RA1, RA2, RA3 of each state: `machines_laws`.
    RA1  The last reassignment is complete within `HEALED_MS` after everything healed: its target has the partition, and
         no other broker has.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

from tests.simulation.machines_broker import DATA, Life
from tests.simulation.machines_faults import Faults
from tests.simulation.machines_world import BROKERS, HEALED_MS, LogLine, MachinesWorld, silent

from rota.coordinator.controller import reassignment
from rota.coordinator.metadata.store import StoreError, StoreFailed


class MovingFaults(Faults):
    """As well as all others: the data topic gets other replicas, or a reassignment is cancelled."""

    MOVES_OFTEN_MS: ClassVar[tuple[float, ...]] = (200.0, 700.0, 1_500.0)

    def begin(self, for_ms: float) -> None:
        super().begin(for_ms)
        self._mean_ms = self.random.choice(self.MOVES_OFTEN_MS)
        self._next()

    def _next(self) -> None:
        self._later(self.random.expovariate(1 / self._mean_ms), self._move)

    def _move(self) -> None:
        life = self._victim()
        if life is not None and life.has_joined:
            life.run(lambda: life.tasks.spawn(self._reassign(life)))
        self._next()

    async def _reassign(self, life: Life) -> None:
        state, live, minimum = life.image.states[DATA], life.image.live(), life.min_isr
        target: list[int] | None = self.random.sample(BROKERS, self.random.choice((2, 2, 3)))
        if reassignment.is_under_way(state) and self.random.random() < 0.2:
            after, target = reassignment.cancel(state, live, minimum), None
        else:
            assert target is not None
            after = reassignment.begin(state, target, live, minimum)
        if after is None or after == state:
            return
        self.world.laws.reassignment_requested(after, target)
        with suppress(StoreFailed, StoreError):
            if await life.image.write(DATA, after, version=state.version):
                self.world.log_line(f"{DATA}: replicas {after.replicas}, +{after.adding}, -{after.removing}")


class MovingWorld(MachinesWorld):
    REASSIGNS: ClassVar[bool] = True
    FAULTS: ClassVar[type[Faults]] = MovingFaults

    def _check_progress(self) -> None:
        super()._check_progress()
        self._run(HEALED_MS, self._is_where_it_should_be)
        assert self._is_where_it_should_be(), f"RA1: other brokers have {DATA}: {self.state(DATA)}"

    def _is_where_it_should_be(self) -> bool:
        return {life.broker_id for life in self.up() if DATA in life.partitions} == set(self.state(DATA).replicas)


def play_moving(seed: int, log_line: LogLine = silent) -> MovingWorld:
    """The whole run of a seed, and its laws."""
    world = MovingWorld(seed, log_line)
    world.play()
    return world
