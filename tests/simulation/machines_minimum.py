"""Short worlds of the machines in which min.insync.replicas is changed again and again; each process learns it late.

ELR1 and RA1 of `machines_laws` hold for the largest, and for the smallest, of the values that there were.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from tests.simulation.machines_broker import Life
from tests.simulation.machines_faults import Faults
from tests.simulation.machines_short import FrequentFaults, ShortWorld
from tests.simulation.machines_world import LogLine, MachinesWorld, silent


class MinimumFaults(FrequentFaults):
    """As well as all others."""

    def begin(self, for_ms: float) -> None:
        super().begin(for_ms)
        self._every([self._change])

    def _change(self) -> None:
        world, minimum = self.world, self.random.choice((1, 2, 2, 3))
        world.log_line(f"min.insync.replicas is {minimum}")
        world.min_isr = minimum
        world.min_isr_min, world.min_isr_max = min(minimum, world.min_isr_min), max(minimum, world.min_isr_max)
        for life in world.up():
            self.heap.after(self.random.choice((1.0, 20.0, 300.0)), partial(life.run, partial(self._learn, life)))

    def _learn(self, life: Life) -> None:
        life.configure(self.world.min_isr)


class MinimumWorld(ShortWorld):
    FAULTS: ClassVar[type[Faults]] = MinimumFaults


def play_minimum(seed: int, log_line: LogLine = silent) -> MachinesWorld:
    """The whole run of a seed, and its laws."""
    return MinimumWorld(seed, log_line).play()
