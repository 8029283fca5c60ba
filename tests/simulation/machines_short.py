"""Short worlds of the machines, for many seeds: a fifth of the time of `machines_world`, faults four times as often.

Each fifth seed is one in which replicas are reassigned. All laws hold but G6: the members of the groups stop when
everything heals, and only replicas and producers go on. The worlds of six seconds check G6.
A power cut with the death of another broker (CM5) is in one world of twenty only: breaking CM5 is not found here.
"""

from __future__ import annotations

from typing import ClassVar, Final

from tests.simulation.machines_faults import Faults
from tests.simulation.machines_moves import MovingFaults, MovingWorld
from tests.simulation.machines_world import LogLine, MachinesWorld, silent

MOVES: Final = 5  # each fifth seed


class FrequentFaults(Faults):
    FIRST_MS: ClassVar[float] = 200.0
    OFTEN_MS: ClassVar[tuple[float, ...]] = (120.0, 300.0, 900.0)
    CUT_AFTER_MS: ClassVar[tuple[float, float]] = (75.0, 375.0)
    KILL_WITHIN_MS: ClassVar[float] = 225.0


class FrequentMovingFaults(FrequentFaults, MovingFaults):
    MOVES_OFTEN_MS: ClassVar[tuple[float, ...]] = (150.0, 400.0, 800.0)


class ShortWorld(MachinesWorld):
    RUN_MS: ClassVar[int] = 1_200
    LAG_MS: ClassVar[int] = 400
    CHECKS_GROUP: ClassVar[bool] = False
    FAULTS: ClassVar[type[Faults]] = FrequentFaults


class ShortMovingWorld(ShortWorld, MovingWorld):
    FAULTS: ClassVar[type[Faults]] = FrequentMovingFaults


def play_short(seed: int, log_line: LogLine = silent) -> MachinesWorld:
    """The whole run of a seed, and its laws."""
    world = (ShortWorld if seed % MOVES else ShortMovingWorld)(seed, log_line)
    return world.play()
