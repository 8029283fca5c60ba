"""Keeps the timelines in the compacted topic `__rota_group_timeline`, so that they outlive broker and coordinator.

The runtime hosts a GroupTimeline as it hosts groups: loaded from the partition in slices, written in one batch for
each partition after some turns of the loop, in the leader epoch of that partition.

Laws
    TL1 No reply waits for the timeline, and no failure of it reaches a group.
    TL10 An event is written a few turns of the loop after its tick, with the events of those turns: while groups
        rebalance all the time, a write for each event would cost more than the event. A stop writes all events. Those
        that are not written when the leader epoch changes are written in the new epoch if this broker leads again,
        else dropped and counted: a leader cannot append in an earlier epoch.
    TL2 While the partition is not led here, or is still being read, events wait in memory: PENDING_MAX events and
        PENDING_BYTES_MAX bytes of all groups. Beyond that the oldest of the partition with the most events are dropped
        and counted. They are written, PENDING_SLICE of them in a loop tick, as soon as this broker leads the partition
        and has read it; the placement is that of the groups' own topic, so that one broker usually leads both.
    TL9 When the topic has got more partitions, the events of each group move to the partition that the group has now,
        as soon as this broker leads both; until then they stay. They leave the old one when the other one has them on
        its replicas.
        An event that both have is one. Those that wait, or were refused just before the growth, wait for the new one.
    TL3 A group that is deleted, or forgotten because of the bounds of timeline.py, leaves tombstones: the topic is
        bounded as the memory is. So do its events that are in another partition still (TL9), if that is led here, or
        comes to be led here while the broker remembers the deletion: DELETED_MAX of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from typing import Final

import structlog

from rota.coordinator.log.errors import NotLeader
from rota.coordinator.observe.timeline import (
    EncodedEvents,
    Forget,
    GroupTimeline,
    Mistake,
    Sizes,
    TimelineRecord,
    decoded,
    hosting,
)
from rota.coordinator.runtime.contract import Encoded, Note
from rota.coordinator.runtime.coordinator import CoordinatorRuntime, HostPartition, TimerService
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.runtime.shard import Shard, ShardState, Units
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EVENTS_PER_GROUP_MAX, GroupEvent, decode_key, decode_value, encode_value

log = structlog.get_logger("rota.timeline")

FLUSH_CALLS: Final = 32  # of the tick queue until events are written, two in a turn; an idle loop's take 0.8 ms in all
PENDING_MAX: Final = 4_096  # events that wait until their partition can be written
PENDING_BYTES_MAX: Final = 8 * 1024 * 1024
PENDING_SLICE: Final = 8  # an event of 100 members takes a few hundred microseconds
DELETED_MAX: Final = 1_000  # deleted groups of which another partition may still have events
SEARCH_SLICE: Final = 500  # groups that are looked at in a loop tick after a partition was read
Pending = tuple[str, bytes | None]  # group id and encoded event; None: forget the group


class TimelineLog(CoordinatorRuntime[GroupTimeline]):
    """The timelines of the partitions that this broker leads."""

    def __init__(
        self,
        *,
        shards: int,
        partition: Callable[[int], HostPartition],
        timers: TimerService,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tick_queue: Callable[[Callable[[], None]], object],
        request_topic: Callable[[], None],
    ) -> None:
        """`request_topic` lets the topic be created, unless it exists or is being created. It returns at once."""
        self._request_topic = request_topic
        self._sizes = Sizes()
        self._pending: dict[int, deque[Pending]] = {}  # by shard; never empty
        self._pending_count = self._pending_bytes = 0
        self._misplaced: dict[int, dict[tuple[str, int], None]] = {}  # by shard: groups, and a shard with their events
        self._refused: dict[int, list[Pending]] = {}  # by shard: events whose leader epoch has ended just now
        self._deleted: dict[str, int] = {}  # groups, and when: events from before that do not move
        self.dropped = 0  # events that were never written, since the start
        self._has_warned = False
        super().__init__(
            hosting(),
            shards=shards,
            partition=partition,
            timers=timers,
            now_ms=now_ms,
            wall_ms=wall_ms,
            tick_queue=tick_queue,
            emit_event=self._timeline_loaded,
            on_ready=self._shard_ready,
        )

    # ---- events

    def add(self, group_id: str, event: GroupEvent) -> None:
        """Add an event; it is written some turns later, or when its partition can be written."""
        for _, mistake in self.add_all(((group_id, event),)):
            raise mistake

    def add_all(self, events: Iterable[tuple[str, GroupEvent]]) -> list[Mistake]:
        """Add events; those of a shard together, for speed."""
        mistakes: list[Mistake] = []
        added: dict[int, tuple[dict[str, GroupTimeline], list[TimelineRecord]]] = {}  # by shard
        for group_id, event in events:
            try:
                shard = self.ready(group_id)
                if isinstance(shard, ErrorCode) or shard.index in self._pending:  # those that wait come first
                    self._wait(group_id, encode_value(event))
                    continue
                timelines, records = added.get(shard.index) or added.setdefault(shard.index, ({}, []))
                timeline = timelines.get(group_id) or shard.machines.get(group_id) or GroupTimeline(group_id)
                records.append(timeline.add(event))
                timelines[group_id] = timeline
            except Exception as mistake:  # noqa: BLE001  # whatever it is: the other events are added (TL1)
                mistakes.append((group_id, mistake))
        for index, (timelines, records) in added.items():
            self.shards[index].take(timelines, records)
        for timelines, _ in added.values():
            for group_id, timeline in timelines.items():
                self._set_size(group_id, timeline.size_bytes)
        return mistakes

    def forget(self, group_id: str) -> None:
        """Forget a group and its records."""
        self._deleted.pop(group_id, None)
        self._deleted[group_id] = self.wall_ms()
        if len(self._deleted) > DELETED_MAX:
            del self._deleted[next(iter(self._deleted))]
        self._forget_hosted(group_id)
        shard = self.ready(group_id)
        if isinstance(shard, ErrorCode) or shard.index in self._pending:
            self._wait(group_id, None)

    def of(self, group_id: str) -> tuple[GroupEvent, ...]:
        """Return the group's events, oldest first; none for an unknown group."""
        return decoded(self.encoded(group_id))

    def encoded(self, group_id: str) -> EncodedEvents:
        """Return the bytes of the group's events."""
        shard = self._shard(group_id)
        timeline = shard.machines.get(group_id)
        written, waiting = () if timeline is None else timeline.encoded(), list[bytes]()
        for waiting_id, value in self._pending.get(shard.index, ()):
            if waiting_id == group_id and value is None:
                written, waiting = (), []
            elif waiting_id == group_id and value is not None:
                waiting.append(value)
        return EncodedEvents(written, tuple(waiting))

    def groups(self) -> list[str]:
        """Return the groups that have events."""
        hosted = {group_id for shard in self.shards for group_id in shard.machines}
        return [*hosted.union(group_id for waiting in self._pending.values() for group_id, _ in waiting)]

    def _step(self, shard: Shard[GroupTimeline], group_id: str, event: GroupEvent) -> None:
        timeline = shard.machines.get(group_id) or GroupTimeline(group_id)
        shard.take({group_id: timeline}, (timeline.add(event),))
        self._set_size(group_id, timeline.size_bytes)

    def _set_size(self, group_id: str, size_bytes: int) -> None:
        self._sizes.set(group_id, size_bytes)
        while (excess := self._sizes.excess()) is not None:
            self._forget_hosted(excess, self._shard(excess))

    def _forget_hosted(self, group_id: str, loaded: Shard[GroupTimeline] | None = None) -> None:
        """Forget a group's events in all shards that are ready, and in a shard that has just replayed them."""
        for shard in self.shards:
            timeline = shard.machines.get(group_id)
            if timeline is not None and (shard is loaded or shard.state is ShardState.READY):
                shard.step(timeline, Forget())
        self._sizes.set(group_id, 0)

    def _shard(self, group_id: str) -> Shard[GroupTimeline]:
        return self.shards[shard_of(group_id, len(self.shards))]

    # ---- writes

    def schedule_flush(self, shard: Shard[GroupTimeline]) -> None:
        """Write the events of this shard after FLUSH_CALLS calls of the tick queue."""
        if not self._unflushed:
            self._tick_queue(partial(self._flush_after, FLUSH_CALLS))
        self._unflushed.append(shard)

    def _flush_after(self, calls: int) -> None:
        if calls == 0 or not self._unflushed:
            self.flush()
        else:
            self._tick_queue(partial(self._flush_after, calls - 1))

    def append(
        self,
        shard: Shard[GroupTimeline],
        records: list[Encoded],
        producer: tuple[int, int] | None = None,
        units: Units = tuple,
    ) -> tuple[int, bool]:
        """Write the records, see the runtime; keep those whose leader epoch is over."""
        try:
            return super().append(shard, records, producer, units)
        except NotLeader:
            keys = [decode_key(key or b"") for key, _ in records]
            refused = [(key.group, value) for key, (_, value) in zip(keys, records, strict=True) if key is not None]
            self._refused[shard.index] = [pending for pending, _ in groupby(refused)]  # a group has many tombstones
            raise

    def lead(self, index: int, epoch: int) -> None:
        """Become the leader, see the runtime; events of an earlier epoch that are not written yet wait for this one."""
        self.flush()
        super().lead(index, epoch)
        self._keep_refused(index)
        self._drop_excess()

    def _keep_refused(self, index: int) -> None:
        """Let the events whose leader epoch has ended just now wait before those that wait already."""
        refused = self._refused.pop(index, None)
        if refused:
            self._pending[index] = deque([*refused, *self._pending.get(index, ())])
            for _, value in refused:
                self._count_pending(1, value)

    def resign(self, index: int, epoch: int | None = None) -> None:
        """Stop leading or following, see the runtime; what can still be written is written before."""
        self.flush()
        super().resign(index, epoch)
        self.dropped += len(self._refused.pop(index, ()))

    # ---- events that wait

    def resize(self, count: int) -> None:
        """Lead no partition and set their count; events that are not written move to their groups' new partitions."""
        self.flush()
        for shard in self.shards:
            self._keep_refused(shard.index)
            self.resign(shard.index)
        waiting = [
            (group_id, value)
            for index, queue in self._pending.items()
            for group_id, value in queue
            if index == self._shard(group_id).index  # not the tombstones of a partition that the events have left
        ]
        super().resize(count)
        self._misplaced, self._pending = {}, {}
        self._pending_count = self._pending_bytes = 0
        for group_id, value in waiting:
            self._pending.setdefault(self._shard(group_id).index, deque()).append((group_id, value))
            self._count_pending(1, value)
        self._drop_excess()

    def _wait(self, group_id: str, value: bytes | None) -> None:
        shard = self._shard(group_id)
        self._pending.setdefault(shard.index, deque()).append((group_id, value))
        self._count_pending(1, value)
        self._drop_excess()
        if shard.state is ShardState.DOWN:
            self._request_topic()

    def _drop_excess(self) -> None:
        while self._pending_count > PENDING_MAX or self._pending_bytes > PENDING_BYTES_MAX:
            self._take_pending(max(self._pending, key=lambda index: len(self._pending[index])))
            self.dropped += 1
            if not self._has_warned:
                self._has_warned = True
                log.warning(
                    "Timeline events are dropped: this broker does not lead their partitions", waiting=PENDING_MAX
                )

    def _take_pending(self, index: int) -> Pending:
        waiting = self._pending[index]
        taken = waiting.popleft()
        self._count_pending(-1, taken[1])
        if not waiting:
            del self._pending[index]
        return taken

    def _count_pending(self, sign: int, value: bytes | None) -> None:
        self._pending_count += sign
        self._pending_bytes += sign * len(value or b"")

    def _write_pending(self, index: int) -> None:
        """Write some of the events that wait for this partition, and the others in the next ticks."""
        for _ in range(PENDING_SLICE):
            if index not in self._pending or self.shards[index].state is not ShardState.READY:
                return  # all are written, or the partition is lost: they wait on
            group_id, value = self._take_pending(index)
            if value is not None:
                self._step(self.shards[index], group_id, decode_value(value))
            elif index == self._shard(group_id).index:
                self._forget_hosted(group_id)
            elif (moved := self.shards[index].machines.get(group_id)) is not None:
                self.shards[index].step(moved, Forget())
        if index in self._pending:
            self._tick_queue(partial(self._write_pending, index))

    # ---- events of a topic that has grown

    def _search_misplaced(self, shard: Shard[GroupTimeline], groups: Iterator[str]) -> None:
        """Find the groups of a shard that belong to another one, some in each tick."""
        portion = list(islice(groups, SEARCH_SLICE))
        for group_id in portion:
            index = self._shard(group_id).index
            if index != shard.index:
                if index not in self._misplaced:
                    self._tick_queue(partial(self._move_one, index))
                self._misplaced.setdefault(index, {})[group_id, shard.index] = None
        if portion:
            self._tick_queue(partial(self._search_misplaced, shard, groups))

    def _move_one(self, index: int) -> None:
        """Move the events of one group to this shard, and of the others in the next ticks."""
        misplaced = self._misplaced.get(index)
        if misplaced is None or self.shards[index].state is not ShardState.READY:
            return  # until it is ready
        (group_id, source_index), _ = misplaced.popitem()
        source = self.shards[source_index]
        is_here = source.state is ShardState.READY and group_id in source.machines
        if is_here and not self._move(group_id, source, self.shards[index]):
            misplaced[group_id, source_index] = None
            return  # until it is ready again
        if misplaced:
            self._tick_queue(partial(self._move_one, index))
        else:
            del self._misplaced[index]

    def _move(self, group_id: str, source: Shard[GroupTimeline], target: Shard[GroupTimeline]) -> bool:
        """Move a group's events; return False, with all in their place, if the target cannot be written."""
        if not _has_flushed(target):
            return False
        moved, newer = source.machines[group_id], target.machines.get(group_id)
        deleted_ms = self._deleted.get(group_id, -1)
        events = [event for event in moved.describe() if event.time_ms > deleted_ms]
        if not events:
            source.step(moved, Forget())
            self._set_size(group_id, 0 if newer is None else newer.size_bytes)
            return True
        self._write_moved(target, group_id, events, newer)
        if _has_flushed(target):
            committed = target.when_committed(True, lambda _: False)
            leave = partial(_leave, source, moved)
            committed.then(leave) if isinstance(committed, DelayedReply) else leave(committed)
            return True
        self._refused.pop(target.index, None)  # the logs have these events as before
        self._set_size(group_id, moved.size_bytes)
        return False

    def _write_moved(
        self, target: Shard[GroupTimeline], group_id: str, events: list[GroupEvent], newer: GroupTimeline | None
    ) -> None:
        """Write these events and then, once more, those that the shard has: in several batches, of which each prefix
        has them all, as a disk may be full after any. An event that both have is one: the old records may have lost
        their partition, or their broker, before they had tombstones."""
        known, before = (newer.describe(), newer.next_sequence) if newer is not None else ((), 0)
        events = sorted([*events, *known], key=lambda event: event.time_ms)
        for event in events:
            event.sequence = 0
        for value in [*dict.fromkeys(map(encode_value, events))][-EVENTS_PER_GROUP_MAX:]:
            self._step(target, group_id, decode_value(value))
        if newer is not None:
            target.step(newer, Forget(before))
            self._set_size(group_id, newer.size_bytes)

    # ---- the runtime's events

    def _shard_ready(self, index: int) -> None:
        self._write_pending(index)
        if len(self.shards) > 1:
            shard = self.shards[index]
            self._search_misplaced(shard, iter(list(shard.machines)))
        if index in self._misplaced:
            self._tick_queue(partial(self._move_one, index))

    def _timeline_loaded(self, group_id: str, note: Note) -> None:
        size_bytes = note.fields["bytes"]
        assert isinstance(size_bytes, int)
        self._set_size(group_id, size_bytes)

    def _drop(self, shard: Shard[GroupTimeline]) -> None:
        for group_id in shard.machines:
            self._sizes.set(group_id, 0)
        super()._drop(shard)


def _leave(source: Shard[GroupTimeline], moved: GroupTimeline, is_committed: bool) -> None:
    """Forget events that have moved; those of which it is not known stay in both, and move again with a load (TL9)."""
    if is_committed and source.machines.get(moved.group_id) is moved:
        source.step(moved, Forget())


def _has_flushed(shard: Shard[GroupTimeline]) -> bool:
    """Write the events of this shard now; return whether it is led here still."""
    shard.flush()
    return shard.state is ShardState.READY
