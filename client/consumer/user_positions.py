"""The positions of a consumer as its user sees and moves them.

Laws
    The position that the user sees is the one after the last record that the user was given, also while records that
    were taken ahead wait.
    A seek, a pause or a resume takes effect with the next record: no record that was read ahead gets past it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from rota.client.checks import INT32, whole_number
from rota.client.config import ConsumerConfig
from rota.client.consumer.delivered_records import DeliveredRecords, as_partitions
from rota.client.consumer.offset_resolver import OffsetResolver
from rota.client.consumer.positions import Positions
from rota.client.errors import TimedOut
from rota.client.types import OffsetAndMetadata, TopicPartition

Several = TopicPartition | Iterable[TopicPartition]


class UserPositions:
    """`changed()` is called after each change. Where `partitions` may be None, it stands for all assigned ones."""

    def __init__(
        self,
        config: ConsumerConfig,
        positions: Positions,
        delivered: DeliveredRecords,
        resolver: OffsetResolver,
        changed: Callable[[], None],
    ) -> None:
        self._config, self._positions, self._delivered = config, positions, delivered
        self._resolver, self._changed = resolver, changed

    def chosen(self, partitions: Several | None) -> tuple[TopicPartition, ...]:
        """The partitions that a call is about."""
        return tuple(self._positions.assigned) if partitions is None else as_partitions(partitions)

    async def position(self, partition: TopicPartition, timeout_ms: int | None) -> int:
        """Raises as `Consumer.position`."""
        known = self._known(partition)
        if known is not None:
            return known
        timeout_ms = self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000) as timeout:
                return await self._resolver.until(partition)
        except TimeoutError as late:
            if not timeout.expired():
                raise
            raise TimedOut(f"the position of {partition} was not found within {timeout_ms} ms") from late

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the lag, see `Consumer.lag`."""
        offset, position = self._known(partition), self._positions.of(partition)
        reads_committed = self._config.isolation_level == "read_committed"
        end = position.last_stable_offset if reads_committed else position.high_watermark
        return None if offset is None or end is None else max(0, end - offset)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Raises IllegalUse for a partition that is not assigned and for an offset below 0, IllegalArgument for an
        offset that is no integer."""
        at = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        epoch = whole_number("the leader epoch", at.leader_epoch, INT32)
        self._positions.seek(partition, whole_number("offset", at.offset), epoch)
        self._moved((partition,))

    def reset(self, partitions: Several | None, policy: str) -> None:
        """Find the positions anew: `earliest` or `latest`. Raises IllegalUse, then nothing is reset."""
        chosen = self.chosen(partitions)
        for partition in chosen:
            self._positions.of(partition)
        for partition in chosen:
            self._positions.reset(partition, policy)
        self._moved(chosen)

    def pause(self, partitions: Several | None) -> None:
        """Raises IllegalUse, then nothing is paused."""
        chosen = self.chosen(partitions)
        self._positions.pause(chosen)
        self._delivered.put_back(chosen)
        self._changed()

    def resume(self, partitions: Several | None) -> None:
        """Raises IllegalUse, then nothing is resumed."""
        self._positions.resume(self.chosen(partitions))
        self._changed()

    def _known(self, partition: TopicPartition) -> int | None:
        waiting = self._delivered.next_offset(partition)
        return self._positions.of(partition).offset if waiting is None else waiting

    def _moved(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._delivered.forget(partitions)
        self._changed()
