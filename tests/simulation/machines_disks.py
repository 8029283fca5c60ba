"""The world of `machines_world` in which disks are slow, and logs of the data topic fail and lose their end.

As `replica/partitions` does it, a replica whose log has failed leaves the ISR, is recovered, and leaves it again if
records are missing. One log fails at a time, and no machine loses its power meanwhile: what all who have a record lose
is lost. A log loses nothing that no other broker needs to have, as with min.insync.replicas=1 (docs/SKIPPED.md).

Laws, beside those of `machines_world`
    F12  A fetch of a follower counts once, however long the leader loads what it asks for: whoever enters the ISR has
         all that is committed (`machines_laws`).
    R1   Nor does a fetch count that was on its way while the log failed and lost what it speaks of.
    ELR2 A replica whose log has lost records makes way for whoever has them, alive or dead, also if its process ends
         before it has found out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from tests.simulation.machines_broker import DATA
from tests.simulation.machines_faults import Faults
from tests.simulation.machines_image import NOT_REGISTERED
from tests.simulation.machines_laws import EVERYTHING_BYTES
from tests.simulation.machines_moves import MovingWorld
from tests.simulation.machines_short import MOVES, FrequentFaults, FrequentMovingFaults, ShortWorld
from tests.simulation.machines_world import LogLine, MachinesWorld, silent

from rota.coordinator.log.contract import NotCached
from rota.coordinator.log.memory import MemoryLog

LOADS_MS: Final = (5.0, 300.0, 1_500.0)


class ColdLog(MemoryLog):
    """A log whose records are not in the page cache while it `is_cold`."""

    __slots__ = ("is_cold",)
    is_cold: bool

    def read(
        self, offset: int, bytes_max: int, *, until: int | None = None, first_whole: bool = True, wait: bool = True
    ) -> bytes:
        if not wait and getattr(self, "is_cold", False):
            raise NotCached(self._loaded)
        return super().read(offset, bytes_max, until=until, first_whole=first_whole, wait=wait)

    def _loaded(self) -> None:
        """Whoever waits for it reads it."""


class DiskFaults(FrequentFaults):
    """As well as all others."""

    def begin(self, for_ms: float) -> None:
        super().begin(for_ms)
        self._every([self._cool, self._cool, self._fail_log])

    def heal(self) -> None:
        super().heal()
        for disk in self.world.disks.values():
            _cool(disk.logs[DATA], False)

    def _cool(self) -> None:
        life = self._victim()
        if life is not None:
            log, life.disk.load_ms = life.disk.logs[DATA], self.random.choice(LOADS_MS)
            self.world.log_line(f"broker {life.broker_id} has to load its records, in {life.disk.load_ms:.0f} ms")
            _cool(log, True)
            self._later(self.random.choice((300.0, 1_000.0)), lambda: _cool(log, False))

    def _cut_power(self) -> None:
        if not self._has_failed():
            super()._cut_power()

    def _cut_power_of_one(self) -> None:
        if self._has_failed():
            self._is_calm = False
        else:
            super()._cut_power_of_one()

    def _has_failed(self) -> bool:
        return any(disk.failed or disk.has_possible_data_loss for disk in self.world.disks.values())

    def _fail_log(self) -> None:
        life = self._victim()
        if life is None or self._has_failed() or not life.has_joined or life.image.own_epoch == NOT_REGISTERED:
            return
        if DATA not in life.partitions or life.frozen_until_ms > self.heap.now_ms:
            return
        state = self.world.state(DATA)
        others = {*state.isr, *state.elr} - {life.broker_id}
        keeps_all = self.world.min_isr == 1 or not others or self.random.random() < 0.2
        kept = EVERYTHING_BYTES if keeps_all else self.random.choice((0, self.random.randrange(400)))
        self.world.log_line(f"broker {life.broker_id}: the log fails, and keeps {'all' if keeps_all else kept}")
        life.run(lambda: life.fail(DATA, kept))


def _cool(log: MemoryLog, is_cold: bool) -> None:
    assert isinstance(log, ColdLog)
    log.is_cold = is_cold


class DiskWorld(ShortWorld):
    LOG: ClassVar[Callable[..., MemoryLog]] = ColdLog
    FAULTS: ClassVar[type[Faults]] = DiskFaults


class DiskMovingFaults(DiskFaults, FrequentMovingFaults):
    """As well as reassignments."""


class DiskMovingWorld(DiskWorld, MovingWorld):
    FAULTS: ClassVar[type[Faults]] = DiskMovingFaults


def play_disks(seed: int, log_line: LogLine = silent) -> MachinesWorld:
    """The whole run of a seed, and its laws. In each fifth one replicas are reassigned as well."""
    world = (DiskMovingWorld if seed % MOVES == 1 else DiskWorld)(seed, log_line)
    return world.play()
