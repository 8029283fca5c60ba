"""Partitions whose logs have failed leave their ISRs, so that others lead them.

Laws
    R1  They leave as soon as they are found, whenever their logs are to be reopened: until then nobody else can lead
        them. A slow store is asked for many at once. Where it cannot be reached, it is tried again.
        One that others change all the time holds up no other, and the loop does not wait for those that have left.
    ELR2 Which logs have failed is written down, for a start that finds less in them than there was: it would not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Final, Protocol

import structlog

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.repeated_warning import RepeatedWarning
from rota.coordinator.metadata.store import ChangedByOthers, StoreFailed
from rota.coordinator.replica.partition import Partition

logger = structlog.get_logger("rota.partitions")

AT_ONCE_MAX: Final = 128  # partitions that leave their ISRs at the same time

NoteFailed = Callable[[Collection[tuple[str, int]]], None]  # raises StorageFailed


class PartitionHandOver(Protocol):
    """The change of the ISR by which a partition leaves this broker."""

    def __call__(
        self, name: str, index: int, *, lost_records: bool = False, cannot_recover: bool = False
    ) -> Awaitable[object]:
        """Elect another member of the ISR and leave it. Raises StoreFailed.

        With `lost_records` the brokers of the ELR become the ISR when it has no other member. With `cannot_recover` any
        other replica may be elected where unclean elections are allowed.
        """


class FailedLogs:
    """`hand_over` None: there are no other brokers. `on_found` is called once for each failure.

    `is_here` returns whether a partition has not been removed: another topic may have its name by now.
    """

    def __init__(
        self,
        hand_over: PartitionHandOver | None,
        on_found: Callable[[Partition], None],
        is_here: Callable[[Partition], bool],
        note: NoteFailed = lambda _: None,
        noted: Collection[tuple[str, int]] = (),
    ) -> None:
        """`note` writes down which logs have failed, in any thread; `noted` is what it wrote last."""
        self._hand_over, self._on_found, self._is_here = hand_over, on_found, is_here
        self._found = set[Partition]()
        self._note, self._noted = note, frozenset(noted)
        self._note_warning = RepeatedWarning(logger, "It cannot be written down which logs have failed")
        self._warning = RepeatedWarning(logger, "Partitions that are offline cannot leave their ISRs")
        self.task: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """Those that are under way."""
        return [task for task in (self.task, self._noting) if task is not None]

    def found(self, offline: Sequence[Partition]) -> None:
        """Let all partitions that are offline now leave their ISRs, unless they have. Call it periodically."""
        for partition in offline:
            if partition not in self._found:
                self._on_found(partition)
        self._found = set(offline)
        if self._hand_over is None:
            return
        if offline and self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._leave_isrs(offline))
        failed = frozenset((partition.topic, partition.index) for partition in offline)
        if failed != self._noted and self._noting is None:
            self._noting = asyncio.get_running_loop().create_task(self._write_down(failed))

    def online_again(self, partition: Partition) -> None:
        """Its next failure is another one."""
        self._found.discard(partition)

    async def leave_isr(
        self, name: str, index: int, *, lost_records: bool = False, cannot_recover: bool = False
    ) -> None:
        """Raises StoreFailed."""
        if self._hand_over is not None:
            await self._hand_over(name, index, lost_records=lost_records, cannot_recover=cannot_recover)

    async def give_way(self, name: str, index: int) -> None:
        """UE1. A recovery has failed. After each one, with growing waits: the next log may have failed, too."""
        with suppress(StoreFailed):  # the next one tries it again
            await self.leave_isr(name, index, cannot_recover=True)

    async def _write_down(self, failed: frozenset[tuple[str, int]]) -> None:
        """ELR2. Beside the hand-over, which does not wait for a disk that hangs."""
        try:
            await asyncio.to_thread(self._note, failed)
            self._noted = failed
            self._note_warning.succeeded()
        except StorageFailed as error:
            self._note_warning.failed(str(error))
        finally:
            self._noting = None

    async def _leave_isrs(self, offline: Sequence[Partition]) -> None:
        contested = list[str]()
        try:
            for begin in range(0, len(offline), AT_ONCE_MAX):
                portion = [
                    partition
                    for partition in offline[begin : begin + AT_ONCE_MAX]
                    if partition in self._found and self._is_here(partition)
                ]
                contested += filter(None, await eager_tasks.gather(map(self._leave, portion)))
                await eager_tasks.yield_to_loop()  # those that have left wait for nothing
            if contested:
                self._warning.failed(contested[0])
            else:
                self._warning.succeeded()
        except StoreFailed as error:  # the next round, not the next portion: it would wait for the store again
            self._warning.failed(str(error))
        finally:
            self.task = None

    async def _leave(self, partition: Partition) -> str:
        """Return why it could not leave its ISR alone; "" when it has left."""
        try:
            await self.leave_isr(partition.topic, partition.index)
        except ChangedByOthers as error:
            return str(error)
        return ""
