"""Writes the ISR changes that leaders decide on, each as a compare-and-set on the partition's state node.

Laws
    RE2  The leader counts a replica as not needed only when the smaller ISR is written; until an answer is known, the
        old and the new ISR together bound its high watermark (KIP-497).
    CM5  A replica enters the ISR only in the registration in which it has fetched what the ISR has (KIP-903).
    A change whose outcome is not known is written again until it is, or until the leader's epoch is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.replica.partition import Partition

log = structlog.get_logger("rota.isr")

RETRY_SECONDS: Final = 0.2

Epochs = Mapping[int, int]  # of the registrations of the live brokers
ChangeIsr = Callable[  # topic, partition, leader epoch, ISR, who lacks committed records, epochs at the decision
    [str, int, int, tuple[int, ...], frozenset[int], Epochs], Awaitable[bool]
]


class IsrChanges:
    """`change_isr` writes one ISR if the leader epoch is still the current one, and returns whether it did.

    When it returns True, the image of the topics has the new state already. It raises StoreFailed when the outcome is
    not known.
    """

    def __init__(
        self, change_isr: ChangeIsr, now_ms: Callable[[], int], epochs: Callable[[], Epochs] = dict[int, int]
    ) -> None:
        """`epochs` returns those of the present registrations."""
        self._change_isr, self._now_ms, self._epochs = change_isr, now_ms, epochs
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.shrinks = self.expansions = 0  # that were written

    def change(self, partition: Partition, isr: frozenset[int], lacking: frozenset[int] = frozenset()) -> None:
        """Begin to write that ISR; `partition.isr_changed` or `partition.isr_refused` follows.

        `lacking` have lost committed records: they are not in the ELR either.
        """
        task = asyncio.get_running_loop().create_task(
            self._write(partition, partition.leader_epoch, isr, lacking, self._epochs())
        )
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    @property
    def is_busy(self) -> bool:
        """Whether a change is being written."""
        return bool(self._tasks)

    async def stop(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(
        self, partition: Partition, leader_epoch: int, isr: frozenset[int], lacking: frozenset[int], epochs: Epochs
    ) -> None:
        before, is_ambiguous = partition.state.isr, False
        while partition.is_leader and partition.leader_epoch == leader_epoch:
            try:
                where = partition.topic, partition.index, leader_epoch
                is_written = await self._change_isr(*where, _ordered(partition, isr), lacking, epochs)
            except StoreFailed as error:
                is_ambiguous = True
                log.warning("ISR change not confirmed", partition=repr(partition), isr=sorted(isr), reason=str(error))
            else:
                if is_written:
                    self._written(partition, leader_epoch, before, isr)
                    return
                if not is_ambiguous:
                    partition.isr_refused(leader_epoch)
                    return
                isr = self._without_restarted(isr, partition.state.isr, epochs)
            await asyncio.sleep(RETRY_SECONDS)

    def _without_restarted(self, isr: frozenset[int], present: frozenset[int], epochs: Epochs) -> frozenset[int]:
        """Leave out brokers that are not in the present ISR and have registered again.

        They may have left the ISR since the decision. A write with one of them is refused for ever (CM5).
        """
        registered = self._epochs()
        return frozenset(broker for broker in isr if broker in present or registered.get(broker) == epochs.get(broker))

    def _written(self, partition: Partition, leader_epoch: int, before: frozenset[int], isr: frozenset[int]) -> None:
        if isr != before:  # else only the ELR has changed
            is_smaller = len(isr) < len(before)
            verb = "shrinks" if is_smaller else "grows"
            self.shrinks += is_smaller
            self.expansions += not is_smaller
            fields = {"isr": sorted(isr), "was": sorted(before)}
            log.info(f"ISR {verb}", topic=partition.topic, partition=partition.index, **fields)
        partition.isr_changed(leader_epoch, isr, self._now_ms())


def _ordered(partition: Partition, isr: frozenset[int]) -> tuple[int, ...]:
    """Return the ISR in the order of the replicas, as Kafka writes it."""
    return tuple(replica for replica in partition.state.replicas if replica in isr)
