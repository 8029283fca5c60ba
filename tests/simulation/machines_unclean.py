"""The world of `machines_world` in which the data topic allows unclean elections.

Laws of that topic after an unclean election, where R1, L1 and PD1 cannot hold
    R1   An unclean election has a leader epoch of its own, and leaves its leader alone in the ISR (`machines_laws`).
    L1   In the end, what a leader acknowledged in the epoch of the last unclean election or a later one is at its
         offset in every replica, and all replicas have the same records.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from tests.simulation.machines_broker import DATA
from tests.simulation.machines_faults import Faults
from tests.simulation.machines_laws import entries
from tests.simulation.machines_store import SESSION_MS
from tests.simulation.machines_world import LogLine, MachinesWorld, silent

SESSIONS_EXPIRED_MS: Final = SESSION_MS + 700  # one broker alone waits for the end of the sessions of the others


class UncleanFaults(Faults):
    """As well as all others: when a replica is in neither ISR nor ELR, all that are in them are killed for a while.

    Nothing else happens until the others have noticed.
    """

    def begin(self, for_ms: float) -> None:
        super().begin(for_ms)
        self._later(self.random.uniform(500, 2_000), self._look)

    def _look(self) -> None:
        state = self.world.state(DATA)
        eligible = {*state.isr, *state.elr}
        others = sorted(set(self.world.lives) - eligible)
        if not others or self._is_calm or state.leader == -1:
            self._later(100, self._look)
            return
        self.world.log_line(f"all of {sorted(eligible)} are killed, {others} are not")
        self._is_calm = True
        for life in self.world.up():
            if life.broker_id in eligible:
                self.world.kill(life)
                self._later(SESSIONS_EXPIRED_MS, partial(self.world.start, life.broker_id))
        for broker in others:
            self.world.start(broker)
        self._later(SESSIONS_EXPIRED_MS, self._go_on)

    def _go_on(self) -> None:
        self._is_calm = False
        self._look()


class UncleanWorld(MachinesWorld):
    ALLOW_UNCLEAN: ClassVar[frozenset[str]] = frozenset({DATA})
    FAULTS: ClassVar[type[Faults]] = UncleanFaults

    def _check_progress(self) -> None:
        super()._check_progress()
        logs = [life.partitions[DATA].log for life in self.up()]
        records = entries(logs[0], 0, logs[0].log_end_offset)
        for log in logs:
            assert entries(log, 0, log.log_end_offset) == records, "L1: the replicas end with other records"
        values = [value for _, _, value in records]
        for epoch, base, acked in self.laws.acks:
            if epoch >= self.laws.unclean.get(DATA, 0):
                assert values[base : base + len(acked)] == acked, f"L1: {acked} of epoch {epoch} at {base} are lost"


def play_unclean(seed: int, log_line: LogLine = silent) -> UncleanWorld:
    """The whole run of a seed, and its laws."""
    world = UncleanWorld(seed, log_line)
    world.play()
    return world
