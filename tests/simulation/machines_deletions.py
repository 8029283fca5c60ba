"""The world of `machines_world` in which old records of the data topic are deleted, also within a batch.

Laws, beside those of `machines_world`
    RE9  What was deleted does not come back: once all live replicas have deleted it, the log of no later leader begins
         before it.
         In the end no log begins before that of its leader.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from tests.simulation.machines_broker import DATA, Life
from tests.simulation.machines_faults import Faults
from tests.simulation.machines_short import FrequentFaults
from tests.simulation.machines_world import HEALED_MS, LogLine, MachinesWorld, silent

from rota.protocol.errors import ErrorCode

KEPT: Final = 40  # records before the high watermark: a producer may still retry them, and only their log knows that
BATCH_MAX: Final = 5  # records
LOOK_MS: Final = 20.0


class DeletionFaults(FrequentFaults):
    """As well as all others."""

    def begin(self, for_ms: float) -> None:
        super().begin(for_ms)
        self._every([self._delete])

    def _delete(self) -> None:
        for life in self.world.up():
            replica = life.partitions.get(DATA)
            if replica is not None and replica.is_leader:
                start, end = replica.log.log_start_offset, min(replica.high_watermark - KEPT, self._last_of_each())
                if start < end:
                    life.run(partial(self._delete_before, life, self.random.randint(start + 1, end)))
                return

    def _last_of_each(self) -> int:
        """The offset up to which no producer has its last batch: a log without it knows no sequence of it, as Kafka."""
        committed, names = self.world.laws.committed[DATA], {each.name.encode() for each in self.world.producers}
        for offset in range(len(committed) - 1, -1, -1):
            names.discard((committed[offset][2] or b"").partition(b".")[0])
            if not names:
                return offset - BATCH_MAX
        return 0

    def _delete_before(self, life: Life, offset: int) -> None:
        replica = life.partitions[DATA]
        if not replica.is_leader or offset > replica.high_watermark:
            return
        self.world.log_line(f"broker {life.broker_id} deletes records before {offset}")
        replica.begin_delete_before(offset)
        life.tasks.spawn(self._await_deletion(life, offset))

    async def _await_deletion(self, life: Life, offset: int) -> None:
        """As `replica/delayed_deletion`."""
        while (replica := life.partitions.get(DATA)) is not None:
            error = replica.deletion_error(offset, life.image.epochs)
            if error is not None:
                if error is ErrorCode.NONE:
                    self.world.log_line(f"records before {offset} are deleted")
                    self.world.laws.deleted = max(self.world.laws.deleted, offset)
                return
            await life.tasks.sleep(LOOK_MS)


class DeletionWorld(MachinesWorld):
    RUN_MS: ClassVar[int] = 2_500
    LAG_MS: ClassVar[int] = 400
    CHECKS_GROUP: ClassVar[bool] = False
    FAULTS: ClassVar[type[Faults]] = DeletionFaults

    def _check_progress(self) -> None:
        super()._check_progress()
        self._run(HEALED_MS, lambda: not self._earlier())
        assert not self._earlier(), f"RE9: logs begin before their leader's: {self._earlier()}"

    def _earlier(self) -> list[int]:
        starts = {
            life.broker_id: life.partitions[DATA].log_start_offset for life in self.up() if DATA in life.partitions
        }
        return [start for start in starts.values() if start < starts[self.state(DATA).leader]]


def play_deletions(seed: int, log_line: LogLine = silent) -> MachinesWorld:
    """The whole run of a seed, and its laws."""
    return DeletionWorld(seed, log_line).play()
