"""All shards of this broker, and the world they live in.

Laws
    A shard answers only while it leads its partition and has replayed all of it: until then NOT_COORDINATOR or
    COORDINATOR_LOAD_IN_PROGRESS.
    Records of one loop turn are written together: every dirty shard is flushed once at the end of the turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, Protocol

import structlog

from rota.coordinator.group.effects import Note
from rota.coordinator.group.events import Event, ExpireOffsets, TopicsGone
from rota.coordinator.group.machine import Group, GroupConfig
from rota.coordinator.log.contract import Pair, StorageFailed
from rota.coordinator.observe.timeline import Timelines, brief
from rota.coordinator.runtime.records import Encoded
from rota.coordinator.runtime.replay import Readable, Replay
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.runtime.shard import Shard, ShardState
from rota.protocol.constructs import DecodeError
from rota.protocol.errors import ErrorCode
from rota.protocol.records.errors import CorruptBatch

log = structlog.get_logger("rota.coordinator")

OFFSETS_TOPIC: Final = "__consumer_offsets"
BATCH_RECORD_BYTES_MAX: Final = 512 * 1024  # more records than this go out as several batches
WORLDS_FAILURES: Final = (StorageFailed, CorruptBatch, DecodeError)  # others are our own mistakes
COMMIT_TIMEOUT_MS: Final = 5_000  # offsets.commit.timeout.ms
RELOAD_AFTER_MS: Final = 1_000  # a failed disk is asked again at this pace


class OffsetsLog(Readable, Protocol):
    """What a shard needs of the log under it."""

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""


class OffsetsPartition(Protocol):
    """The partition of `__consumer_offsets` under a shard."""

    @property
    def log(self) -> OffsetsLog:
        """Its records. Raises StorageFailed while offline."""

    def append_pairs(self, pairs: list[Pair], now_ms: int) -> object:
        """Write records of the broker's own as one batch. Raises StorageFailed."""

    def when_committed(self, offset: int, deadline_ms: int, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once: NONE when the high watermark has reached `offset`, else an error, by the deadline."""


class TimerService(Protocol):
    """Timers by key; setting one again moves it."""

    def at(self, key: object, at_ms: int, call: Callable[[], None]) -> None:
        """Call at that time."""

    def cancel(self, key: object) -> None:
        """Do not."""


class Coordinator:
    """The shards by number, and the shell that carries out what they decide."""

    def __init__(
        self,
        *,
        shards: int,
        config: GroupConfig,
        partition: Callable[[int], OffsetsPartition],
        timers: TimerService,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tick_queue: Callable[[Callable[[], None]], object],
        ensure_offsets_topic: Callable[[], Awaitable[bool]],
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
    ) -> None:
        self.config, self.timelines = config, Timelines()
        self.shards = [Shard(index, self) for index in range(shards)]
        self.now_ms, self.wall_ms = now_ms, wall_ms
        self._partition, self._timers, self._commit_timeout_ms = partition, timers, commit_timeout_ms
        self._tick_queue, self._ensure_offsets_topic = tick_queue, ensure_offsets_topic
        self._dirty: list[Shard] = []
        self._loading: dict[int, Replay] = {}
        self._told_down: dict[int, str] = {}  # why a shard is down, as the log has it

    # ---- for the APIs

    def ready(self, group_id: str) -> Shard | ErrorCode:
        """The shard of a group, or why it cannot answer (14, 16)."""
        shard = self.shards[shard_of(group_id, len(self.shards))]
        if shard.state is ShardState.READY:
            return shard
        if shard.state is ShardState.CATCHING_UP:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def group(self, shard: Shard, group_id: str) -> Group:
        """The group of that name; a new one is kept only when a step leaves something in it."""
        return shard.groups.get(group_id) or Group(group_id, self.config)

    def groups(self) -> Iterator[tuple[Shard, Group]]:
        """Every group that lives here."""
        for shard in self.shards:
            for group in shard.groups.values():
                yield shard, group

    async def ensure_offsets_topic(self) -> bool:
        """Create the offsets topic if it does not exist, as the first FindCoordinator does; False when that fails."""
        return self.shards[0].state is not ShardState.DOWN or await self._ensure_offsets_topic()

    @property
    def is_loading(self) -> bool:
        """Whether some shard still replays its log."""
        return bool(self._loading)

    # ---- life of a shard

    def lead(self, indexes: Iterable[int]) -> None:
        """These partitions are led here from now on; `load_slice` brings their groups back."""
        for index in indexes:
            shard = self.shards[index]
            if shard.state is ShardState.DOWN:
                self._lead_one(shard)
        if self._loading:
            self._tick_queue(self._load_on)

    def _lead_one(self, shard: Shard) -> None:
        try:
            self._loading[shard.index] = Replay(self._partition(shard.index).log)
        except StorageFailed as cause:
            self.failed(shard, cause)
        else:
            shard.state = ShardState.CATCHING_UP

    def _load_on(self) -> None:
        if not self.load_slice():
            self._tick_queue(self._load_on)

    def resign(self, index: int) -> None:
        """Somebody else leads this partition now."""
        self._loading.pop(index, None)
        self.shards[index].abandon(ErrorCode.NOT_COORDINATOR)

    def load_slice(self) -> bool:
        """Replay some more; True when no shard is left to load."""
        for index, replay in self._loading.items():
            try:
                if replay.advance():
                    self._begin(self.shards[index], replay)
            except Exception as cause:  # noqa: BLE001  # whatever it is: no other shard may wait for this one's log
                self.failed(self.shards[index], cause)
            break
        return not self._loading

    def _begin(self, shard: Shard, replay: Replay) -> None:
        del self._loading[shard.index]
        for record in replay.records():
            group = shard.groups.get(record.group_id)
            if group is None:
                group = shard.groups[record.group_id] = Group(record.group_id, self.config)
            group.replay(record)
        shard.state = ShardState.READY
        self._told_down.pop(shard.index, None)
        for group in list(shard.groups.values()):
            shard.perform(group, group.loaded(self.now_ms(), self.wall_ms()))
        if replay.records_read:
            log.info("Loaded shard", shard=shard.index, groups=len(shard.groups), records=replay.records_read)

    # ---- what all groups hear

    def tell_all(self, event: Event) -> None:
        """Step every group: offsets expire, topics go."""
        for shard, group in list(self.groups()):
            if shard.groups.get(group.group_id) is group:  # its shard did not stop meanwhile
                shard.tell(group, event)

    def expire_offsets(self, retention_ms: int) -> None:
        """The periodic sweep (offsets.retention.check.interval.ms)."""
        self.tell_all(ExpireOffsets(retention_ms))

    def topics_gone(self, names: Iterable[str]) -> None:
        """Deleted topics take their committed offsets along."""
        self.tell_all(TopicsGone(frozenset(names)))

    # ---- the shell of the shards

    def dirty(self, shard: Shard) -> None:
        if not self._dirty:
            self._tick_queue(self.flush)
        self._dirty.append(shard)

    def flush(self) -> None:
        """Write what this turn decided. Also called before the broker stops."""
        dirty, self._dirty = self._dirty, []
        for shard in dirty:
            shard.flush()

    def append(self, shard: Shard, records: list[Encoded], done: Callable[[ErrorCode], None]) -> None:
        partition, wall_ms = self._partition(shard.index), self.wall_ms()
        for some in portions(records):
            partition.append_pairs(some, wall_ms)
        partition.when_committed(partition.log.log_end_offset, self.now_ms() + self._commit_timeout_ms, done)

    def arm(self, key: tuple[str, str], at_ms: int, call: Callable[[], None]) -> None:
        self._timers.at(key, at_ms, call)

    def disarm(self, key: tuple[str, str]) -> None:
        self._timers.cancel(key)

    def emit_event(self, group_id: str, note: Note) -> None:
        note = brief(note)
        self.timelines.add(group_id, self.wall_ms(), note)
        log.info(note.event, **note.fields)

    def broken(self, shard: Shard, mistake: Exception) -> None:
        log.error("Shard made a mistake; its groups are loaded again", shard=shard.index, exc_info=mistake)
        shard.abandon(ErrorCode.NOT_COORDINATOR)
        self.lead([shard.index])

    def failed(self, shard: Shard, cause: Exception) -> None:
        """A1. Only this shard is down; it is loaded again and again, and told of once for each cause."""
        if self._told_down.get(shard.index) != str(cause):
            self._told_down[shard.index] = str(cause)
            mistake = None if isinstance(cause, WORLDS_FAILURES) else cause
            told = "Shard lost its log; its groups are loaded again"
            log.error(told, shard=shard.index, cause=str(cause), exc_info=mistake)
        self._loading.pop(shard.index, None)
        shard.abandon(ErrorCode.NOT_COORDINATOR)
        self._timers.at(("reload", shard.index), self.now_ms() + RELOAD_AFTER_MS, lambda: self.lead([shard.index]))


def portions(records: list[Encoded]) -> Iterator[list[Encoded]]:
    """The records in runs of at most about BATCH_RECORD_BYTES_MAX."""
    sizes = [len(key or b"") + len(value or b"") for key, value in records]
    if sum(sizes) <= BATCH_RECORD_BYTES_MAX:
        yield records
        return
    start, size = 0, 0
    for i, one in enumerate(sizes):
        size += one
        if size > BATCH_RECORD_BYTES_MAX and i > start:
            yield records[start:i]
            start, size = i, one
    yield records[start:]
