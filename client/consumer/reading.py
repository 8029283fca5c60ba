"""What every call of a consumer does with positions: where it stands, where it goes on, what it leaves out.

The half of `Consumer` that knows no group: consumer.py has the other one.

Laws
    What the user sees as a position is behind the last record that the user was handed, also while others wait.
    A seek, a pause or a resume takes effect with the next record: nothing that was read ahead gets past it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from rota.client.config import ConsumerConfig
from rota.client.consumer.catalog import catalog
from rota.client.consumer.delivered_records import Handed, these
from rota.client.consumer.fetcher import Fetcher
from rota.client.consumer.offset_resolver import Starting
from rota.client.consumer.positions import Positions
from rota.client.errors import IllegalUse, TimedOut
from rota.client.network.cluster import Cluster
from rota.client.offsets.list_offsets import EARLIEST, LATEST, list_offsets
from rota.client.types import GroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition

Several = TopicPartition | Iterable[TopicPartition]


class Reading:
    """Positions of the assigned partitions. Wherever `partitions` may be None, it stands for all of them."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._cluster = Cluster(config, auto_create=config.allow_auto_create_topics)
        self._positions = Positions()
        self._handed = Handed(self._positions)
        self._fetcher = Fetcher(self._cluster, config, self._positions)
        self._starting = Starting(self._cluster, config, self._positions, self._speaks, self._notice)
        self._attention = True  # the next call has more to do than to take records
        self._look_at = 0.0  # the loop's time until which a call may take records and do nothing else
        self._is_started = self._is_closed = False

    def _speaks(self) -> GroupMetadata | None:
        """Whose committed offsets count."""
        return None

    def _look_soon(self) -> None:
        self._attention, self._look_at = True, 0.0

    def _notice(self) -> None:
        self._look_soon()
        self._fetcher.wake()

    def _open(self) -> None:
        if self._is_closed:
            raise IllegalUse(f"{self!r} is closed: make another one")

    def _started(self) -> None:
        self._open()
        if not self._is_started:
            raise IllegalUse(f"{self!r} was not started: use `async with`, or `await consumer.start()` first")

    def _chosen(self, partitions: Several | None) -> tuple[TopicPartition, ...]:
        return tuple(self._positions.assigned) if partitions is None else these(partitions)

    # where it stands

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer reads now."""
        return self._positions.assigned

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Those of them that give no records until they are resumed."""
        return self._positions.paused

    async def position(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """The offset of the next record of an assigned partition. Raises IllegalUse, NoOffset, TimedOut."""
        self._started()
        waiting = self._handed.next_offset(partition)
        known = self._positions.of(partition).offset if waiting is None else waiting
        if known is not None:
            return known
        timeout_ms = self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000) as timeout:
                return await self._starting.until(partition)
        except TimeoutError as late:
            if not timeout.expired():
                raise
            raise TimedOut(f"the position of {partition} was not found within {timeout_ms} ms") from late

    def lag(self, partition: TopicPartition) -> int | None:
        """Offsets between the position and the end that this consumer can read to (the high watermark, with
        read_committed the last stable offset) as of the last fetch. None while either is unknown."""
        position, waiting = self._positions.of(partition), self._handed.next_offset(partition)
        offset = position.offset if waiting is None else waiting
        reads_committed = self._config.isolation_level == "read_committed"
        end = position.last_stable_offset if reads_committed else position.high_watermark
        return None if offset is None or end is None else max(0, end - offset)

    # where it goes on

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on from this offset. Raises IllegalUse when the partition is not assigned."""
        self._open()
        at = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        self._positions.seek(partition, at.offset, at.leader_epoch)
        self._moved((partition,))

    def seek_to_beginning(self, partitions: Several | None = None) -> None:
        """Read on from the first record that there is; looked for when it is needed."""
        self._seek_to("earliest", partitions)

    def seek_to_end(self, partitions: Several | None = None) -> None:
        """Read on from the first record that comes; looked for when it is needed."""
        self._seek_to("latest", partitions)

    async def seek_to_time(
        self, timestamp_ms: int, partitions: Several | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Read on from the first record at or after that time, from the end where there is none. Returns what was
        found. Raises IllegalUse, TimedOut, BrokerError."""
        chosen = self._chosen(partitions)
        for partition in chosen:
            self._positions.of(partition)
        found = await self.offsets_for_times(dict.fromkeys(chosen, timestamp_ms), timeout_ms=timeout_ms)
        for partition in chosen:
            at = found[partition]
            if partition not in self._positions.assigned:
                continue  # it was given up while we looked
            if at is None:
                self._seek_to("latest", partition)
            else:
                self.seek(partition, OffsetAndMetadata(at.offset, leader_epoch=at.leader_epoch))
        return found

    def pause(self, partitions: Several | None = None) -> None:
        """No records of these, until `resume`; the group's assignment does not change."""
        self._open()
        chosen = self._chosen(partitions)
        self._positions.pause(chosen)
        self._handed.put_back(chosen)
        self._notice()

    def resume(self, partitions: Several | None = None) -> None:
        """Records of these again."""
        self._open()
        self._positions.resume(self._chosen(partitions))
        self._notice()

    def _seek_to(self, how: str, partitions: Several | None) -> None:
        self._open()
        chosen = self._chosen(partitions)
        for partition in chosen:
            self._positions.of(partition)
        for partition in chosen:
            self._positions.reset(partition, how)
        self._moved(chosen)

    def _moved(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._handed.forget(partitions)
        self._notice()

    # what there is

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (ms since the epoch) in each partition; None where there is none. The
        partitions need not be assigned. Raises TimedOut, UnknownTopic, BrokerError."""
        self._started()
        negative = next((one for one, at in times.items() if at < 0), None)
        if negative is not None:
            raise IllegalUse(f"time {times[negative]} for {negative}: times are milliseconds since the epoch")
        level = self._config.isolation_level
        return await list_offsets(self._cluster, times, isolation_level=level, timeout_ms=timeout_ms)

    async def beginning_offsets(
        self, partitions: Several, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record that there is, or would be, in each partition."""
        return await self._ends(EARLIEST, partitions, timeout_ms)

    async def end_offsets(self, partitions: Several, *, timeout_ms: int | None = None) -> dict[TopicPartition, int]:
        """The offset of the next record that comes, in each partition; with read_committed the last stable one."""
        return await self._ends(LATEST, partitions, timeout_ms)

    async def _ends(self, end: int, partitions: Several, timeout_ms: int | None) -> dict[TopicPartition, int]:
        self._started()
        found = await list_offsets(
            self._cluster,
            dict.fromkeys(these(partitions), end),
            isolation_level=self._config.isolation_level,
            timeout_ms=timeout_ms,
        )
        return {partition: at.offset for partition, at in found.items() if at is not None}

    async def partitions_for(self, topic: str, *, timeout_ms: int | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic, in order; nothing when it is not there."""
        self._started()
        return (await catalog(self._cluster, (topic,), timeout_ms=timeout_ms)).get(topic, ())

    async def topics(self, *, timeout_ms: int | None = None) -> dict[str, tuple[PartitionInfo, ...]]:
        """All topics that there are, internal ones too, and their partitions."""
        self._started()
        return await catalog(self._cluster, None, timeout_ms=timeout_ms)
