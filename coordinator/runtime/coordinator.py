"""All shards of this broker: their leaders, loading, standbys, writes, timers.

Laws
    A shard serves requests only while this broker leads its partition and has replayed it: before that the code is
    NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
    CO4 A `lead` or `resign` of an old leader epoch changes nothing; a shard writes only in its own leader epoch.
    A1  A failure of one partition stops one shard; its load is repeated until it succeeds.
    CO1 Loading and following run in slices of a few milliseconds. Shards with little to load share a slice.
    F11 A shard whose records are not in the page cache waits for them; the others go on.
    Records of one loop tick are written together: every shard with new records is flushed once at the end of the tick.
    CO9 Records that no reply waits for are written with the next that one waits for, or a few turns later, and before
        the broker stops: a group that is created is written with its first generation.

The file is longer than 400 lines because one class hosts all shards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any, Final, Generic, Protocol

import structlog

from rota.coordinator.log.contract import Appended, Load, Pair, StorageFailed
from rota.coordinator.log.errors import NotCached, NotLeader
from rota.coordinator.runtime.broadcast import Broadcast, each_machine
from rota.coordinator.runtime.contract import BATCH_RECORD_BYTES_MAX, Encoded, Hosting, M, Note
from rota.coordinator.runtime.logged_failures import LoggedFailures
from rota.coordinator.runtime.replay import Readable, Replay
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.runtime.shard import NO_EPOCH, Shard, ShardState, TimerKey, Units
from rota.protocol.constructs import DecodeError
from rota.protocol.errors import ErrorCode
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import encode_pairs
from rota.protocol.records.offset_columns import pairs_bytes

log = structlog.get_logger("rota.coordinator")

_READY: Final = ShardState.READY  # bound once: every request reads it
LOADED_MACHINES_MAX: Final = 64  # of one slice, when a shard becomes ready
SHARED_WORK_MAX: Final = 0.5  # of a slice; with less work than that it goes on with the next shard
STEP_WORK: Final = 1 / 128  # of a step that has nothing to read or apply
POSTPONED_CALLS: Final = 16  # of the tick queue until records are written that no reply waits for, two in a turn
EXPECTED_FAILURES: Final = (StorageFailed, CorruptBatch, DecodeError)  # other exceptions are bugs
NO_OFFSET: Final = -1
COMMIT_TIMEOUT_MS: Final = 5_000  # offsets.commit.timeout.ms
RELOAD_AFTER_MS: Final = 1_000  # pause before a shard that failed is loaded again


class HostPartition(Protocol):
    """The partition under a shard."""

    @property
    def log(self) -> Readable:
        """Its records. Raises StorageFailed while offline."""

    @property
    def high_watermark(self) -> int:
        """Return the offset after the last committed record. Raises StorageFailed while offline."""

    def append_pairs(
        self,
        pairs: list[Pair],
        now_ms: int,
        leader_epoch: int | None = None,
        producer: tuple[int, int] | None = None,
    ) -> Appended:
        """Write records of this broker as one batch, in the transaction of `producer` (id, epoch) if there is one.

        Raises StorageFailed, also if the leader epoch is another one.
        """

    def append_encoded(self, records: bytes, count: int, now_ms: int, leader_epoch: int) -> int:
        """As `append_pairs`, of records that are encoded as in a batch. Returns the log end offset."""

    def is_committed(self, offset: int) -> bool:
        """Return whether `when_committed` would call with NONE at once."""

    def when_committed(self, offset: int, deadline_ms: int, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once: NONE when the high watermark has reached `offset`, else an error, by the deadline."""


class TimerService(Protocol):
    """Timers by key; setting one again moves it."""

    def at(self, key: object, at_ms: int, call: Callable[[], None]) -> None:
        """Call `call` at that time."""

    def cancel(self, key: object) -> None:
        """Cancel the timer, if it is set."""


def load_now(loads: Sequence[Load], then: Callable[[], None]) -> None:
    """Run the loads and call `then`. For logs in memory, which need no loads."""
    for load in loads:
        with suppress(OSError):  # the next read gets the same error
            load()
    then()


class CoordinatorRuntime(Generic[M]):
    """The shards by number. It performs their writes, timers and replies."""

    def __init__(
        self,
        hosting: Hosting[M],
        *,
        shards: int,
        partition: Callable[[int], HostPartition],
        timers: TimerService,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tick_queue: Callable[[Callable[[], None]], object],
        emit_event: Callable[[str, Note], None],
        on_ready: Callable[[int], None] = lambda index: None,
        send: Callable[[Shard[M], Any], None] = lambda shard, message: None,
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
    ) -> None:
        """`on_ready` is called when a shard has replayed its partition and serves requests.

        `send` is called with each message of the machines' Send effects, when the records before it are committed.
        """
        self.hosting, self.now_ms, self.wall_ms, self.emit_event = hosting, now_ms, wall_ms, emit_event
        self.shards = [Shard(index, self, hosting) for index in range(shards)]
        self._on_ready, self.send = on_ready, send
        self._partition, self._commit_timeout_ms = partition, commit_timeout_ms
        self._timers, self._tick_queue = timers, tick_queue
        self._unflushed: list[Shard[M]] = []
        self._loading: dict[int, Iterator[float]] = {}  # steps of work, by shard
        self._standbys: dict[int, Replay[M]] = {}
        self._behind: dict[int, None] = {}  # standbys whose log has grown, in that order
        self._is_load_scheduled = False
        self.load_soon: Callable[[Sequence[Load], Callable[[], None]], None] = load_now  # a broker has another thread
        self._awaiting_disk: set[int] = set()  # shards whose next records are being loaded into the page cache
        self._broadcasts: deque[tuple[Broadcast[M], Callable[[], None]]] = deque()
        self._missed: dict[int, list[Callable[[], None]]] = {}  # broadcasts to repeat when the shard is ready
        self.loads_count = self.loads_total_ms = 0  # of shards that this broker leads
        self._logged_failures = LoggedFailures()

    # ---- requests

    def ready(self, machine_id: str) -> Shard[M] | ErrorCode:
        """Return the shard that hosts this id, or why it cannot answer (14, 16)."""
        shard = self.shards[shard_of(machine_id, len(self.shards))]
        if shard.state is _READY:
            return shard
        if shard.state is ShardState.CATCHING_UP and shard.is_leader:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def machines(self) -> Iterator[M]:
        """Iterate over the machines of all shards that are ready."""
        for shard in self.shards:
            if shard.state is ShardState.READY:
                yield from shard.machines.values()

    def machine_portions(self, size: int) -> Iterator[list[M]]:
        """Iterate over the machines of all shards that are ready, `size` at once; the last portion has the rest.

        Machines may be created and removed, and shards lost, between two portions.
        """
        portion: list[M] = []
        for machine in chain.from_iterable(map(each_machine, self.shards)):
            if len(portion) == size:
                yield portion
                portion = []
            portion.append(machine)
        yield portion

    def loads(self) -> tuple[object, ...]:
        """Return what changes when a shard loads or is lost: machines that were collected before may be too few, or not
        durable, when it is another value after that."""
        return self.is_loading, self.loads_count, [shard.term for shard in self.shards]

    def in_slices(self, work: Iterator[None], done: Callable[[], None]) -> None:
        """Go on with `work` to its next `yield`, once at the end of this tick and of each later one; then call `done`.

        A closed generator ends there, and `done` is called.
        """

        def advance() -> None:
            if next(work, True):
                done()
            else:
                self._tick_queue(advance)

        self._tick_queue(advance)

    @property
    def is_loading(self) -> bool:
        """Return whether a shard that this broker leads is still replaying its log."""
        return bool(self._loading)

    def resize(self, count: int) -> None:
        """Set the number of shards, which is the partition count of the topic that another broker has created.

        Raises ValueError if a shard of this broker is in use already.
        """
        if count == len(self.shards):
            return
        if any(shard.state is not ShardState.DOWN or shard.is_leader for shard in self.shards):
            raise ValueError(f"{len(self.shards)} shards are in use and cannot become {count}")
        self.shards = [Shard(index, self, self.hosting) for index in range(count)]

    def broadcast(
        self, event: Any, cost: Callable[[M], int], done: Callable[[], None] = lambda: None, *, repeats_max: int = 0
    ) -> None:
        """Step an event in every machine, starting at the end of this tick; call `done` when all have processed it.

        A shard that is led here but not ready is skipped. With `repeats_max` the event is stepped there when it is
        ready, and repeated, at most that often, if the records of the event were not committed.
        """
        self._start_broadcast(self.shards, event, cost, done, repeats_max)

    def _start_broadcast(
        self,
        shards: Sequence[Shard[M]],
        event: Any,
        cost: Callable[[M], int],
        done: Callable[[], None],
        repeats_left: int,
    ) -> None:
        def missed(shard: Shard[M]) -> None:
            if repeats_left and shard.is_leader:
                repeat = partial(self._start_broadcast, (shard,), event, cost, lambda: None, repeats_left - 1)
                self._missed.setdefault(shard.index, []).append(repeat)

        if not self._broadcasts:
            self._tick_queue(self._broadcast_slice)
        self._broadcasts.append((Broadcast(shards, event, cost, missed), done))

    def _broadcast_slice(self) -> None:
        broadcast, done = self._broadcasts[0]
        if broadcast.advance():
            done()  # may broadcast again: scheduled below, once
            self._broadcasts.popleft()
        if self._broadcasts:
            self._tick_queue(self._broadcast_slice)

    # ---- leadership

    def lead(self, index: int, epoch: int) -> None:
        """Become the leader of a partition: replay the records that were not replayed yet, then serve requests.

        A known or older `epoch` is ignored. A newer one while leading replays again: another broker may have written.
        """
        shard = self.shards[index]
        if epoch <= shard.leader_epoch:
            return
        if shard.is_leader:
            self._drop(shard)
        shard.leader_epoch, shard.is_leader = epoch, True
        self._load(shard)

    def resign(self, index: int, epoch: int | None = None) -> None:
        """Stop leading or following: in `epoch` another broker leads. None: the replica is no longer here.

        A known or older `epoch` is ignored.
        """
        shard = self.shards[index]
        if epoch is not None and epoch <= shard.leader_epoch:
            return
        if index in self._standbys and epoch is not None:
            shard.leader_epoch = epoch  # another leader of a log that is followed already
            return
        shard.leader_epoch, shard.is_leader = NO_EPOCH if epoch is None else epoch, False
        self._drop(shard)

    def follow(self, index: int) -> None:
        """Keep a standby: replay the committed records, and later ones at `log_grew`. A second call starts again."""
        shard = self.shards[index]
        if shard.is_leader:
            return
        self._drop(shard)
        shard.state = ShardState.CATCHING_UP
        self._standbys[index] = Replay(self.hosting, shard.machines, shard.transactions)
        self.log_grew(index)

    def is_standby(self, index: int) -> bool:
        """Return whether a standby of this partition is kept."""
        return index in self._standbys

    def log_grew(self, index: int) -> None:
        """Schedule the standby of this partition to read on. Call it when the high watermark has moved."""
        if index in self._standbys:
            self._behind[index] = None
            self._schedule_load()

    def _drop(self, shard: Shard[M]) -> None:
        self._loading.pop(shard.index, None)
        self._standbys.pop(shard.index, None)
        self._behind.pop(shard.index, None)
        self._timers.cancel(self._reload_key(shard))
        shard.abandon(ErrorCode.NOT_COORDINATOR)

    # ---- loading, in slices

    def _load(self, shard: Shard[M]) -> None:
        replay = self._standbys.pop(shard.index, None) or Replay(self.hosting, shard.machines, shard.transactions)
        self._behind.pop(shard.index, None)
        try:
            end = self._partition(shard.index).log.log_end_offset
        except StorageFailed as cause:
            self.storage_failed(shard, cause)
            return
        if replay.offset > end:  # the log was truncated below what the standby had replayed
            shard.abandon(ErrorCode.NOT_COORDINATOR)
            replay = Replay(self.hosting, shard.machines, shard.transactions)
        shard.state = ShardState.CATCHING_UP
        self._loading[shard.index] = self._load_steps(shard, replay, end)
        self._schedule_load()

    def _load_steps(self, shard: Shard[M], replay: Replay[M], end: int) -> Iterator[float]:
        """Load; after each step yield its share of a slice."""
        log_of_shard, before, began_ms = self._partition(shard.index).log, replay.records_read, self.now_ms()
        while not replay.is_at(end):
            self._advance(shard.index, replay, log_of_shard, end)
            yield replay.work
        machines = iter(list(shard.machines.values()))
        while portion := list(islice(machines, LOADED_MACHINES_MAX)):
            for machine in portion:
                shard.perform(machine, machine.loaded(self.now_ms(), self.wall_ms()))
            yield len(portion) / LOADED_MACHINES_MAX
        del self._loading[shard.index]
        self.loads_count += 1
        self.loads_total_ms += self.now_ms() - began_ms
        shard.become_ready()
        self._on_ready(shard.index)
        for repeat in self._missed.pop(shard.index, ()):
            repeat()
        if replay.records_read:
            fields = {"records": replay.records_read, "read_as_standby": before}
            log.info("Loaded shard", shard=shard.index, groups=len(shard.machines), **fields)

    def _follow_step(self, shard: Shard[M]) -> float:
        replay, partition = self._standbys[shard.index], self._partition(shard.index)
        log_end = partition.log.log_end_offset
        if replay.offset > log_end:  # truncated
            self.follow(shard.index)
        elif self._advance(shard.index, replay, partition.log, min(partition.high_watermark, log_end)):
            del self._behind[shard.index]
        return replay.work

    def _advance(self, index: int, replay: Replay[M], log_of_shard: Readable, end: int) -> bool:
        """Do one step of a replay; return whether it is at `end`. It goes on later if its records are on the disk."""
        try:
            return replay.advance(log_of_shard, end)
        except NotCached as cold:
            self._awaiting_disk.add(index)
            self.load_soon(cold.loads, partial(self._loaded, index))
            return False

    def _loaded(self, index: int) -> None:
        self._awaiting_disk.discard(index)
        if self._loading or self._behind:
            self._schedule_load()

    def load_slice(self) -> bool:
        """Do one slice of loading, or else of following; return True when no work is left that can go on now."""
        work = 0.0
        while work < SHARED_WORK_MAX and (index := self._next_work()) is not None:
            work += STEP_WORK + self._load_step(index)
        return self._next_work() is None

    def _load_step(self, index: int) -> float:
        try:
            return next(self._loading[index], 0) if index in self._loading else self._follow_step(self.shards[index])
        except Exception as cause:  # noqa: BLE001  # any exception: the other shards must not wait for this one's log
            self.storage_failed(self.shards[index], cause)
            return 1.0

    def _next_work(self) -> int | None:
        """Return the shard to load or to follow next; one that waits for the disk is left out."""
        return next((index for index in chain(self._loading, self._behind) if index not in self._awaiting_disk), None)

    def _schedule_load(self) -> None:
        if not self._is_load_scheduled:
            self._is_load_scheduled = True
            self._tick_queue(self._load_on)

    def _load_on(self) -> None:
        self._is_load_scheduled = False
        if not self.load_slice():
            self._schedule_load()

    # ---- effects of the shards

    def schedule_flush(self, shard: Shard[Any]) -> None:
        if not self._unflushed:
            self._tick_queue(partial(self._flush_awaited, POSTPONED_CALLS))
        self._unflushed.append(shard)

    def _flush_awaited(self, calls: int) -> None:
        """Write the records that a reply waits for, and after so many more calls all of them.

        One call is queued at most while there are any: answers bring about more records during the writes.
        """
        unflushed = self._unflushed
        self._unflushed = [shard for shard in unflushed if calls and not shard.is_awaited]
        if self._unflushed:
            self._tick_queue(partial(self._flush_awaited, calls - 1))
        for shard in unflushed:
            if not calls or shard.is_awaited:
                shard.flush()

    def flush(self) -> None:
        """Write all records that are decided. Also called before the broker stops."""
        unflushed, self._unflushed = self._unflushed, []
        for shard in unflushed:
            shard.flush()

    def append(
        self,
        shard: Shard[Any],
        records: list[Encoded],
        producer: tuple[int, int] | None = None,
        units: Units = tuple,
    ) -> tuple[int, bool]:
        partition, wall_ms, end = self._partition(shard.index), self.wall_ms(), NO_OFFSET
        for portion in portions(records, units):
            if producer is None:
                end = partition.append_encoded(encode_pairs(portion), len(portion), wall_ms, shard.leader_epoch)
            else:
                end = partition.append_pairs(portion, wall_ms, shard.leader_epoch, producer).last_offset + 1
        if end == NO_OFFSET:
            end = partition.log.log_end_offset
        return end, partition.is_committed(end)

    def append_encoded(self, shard: Shard[Any], records: bytes, count: int) -> tuple[int, bool]:
        partition = self._partition(shard.index)
        end = partition.append_encoded(records, count, self.wall_ms(), shard.leader_epoch)
        return end, partition.is_committed(end)

    def write_marker(
        self, index: int, producer_id: int, write: Callable[[], Appended], *, is_commit: bool
    ) -> int | None:
        """End a producer's transaction in a shard: `write` appends the marker to its partition.

        Returns the offset after the marker; None, and nothing is written, while the shard is not ready here.
        Raises what `write` raises.
        """
        shard = self.shards[index]
        if shard.state is not _READY:
            return None

        def append() -> tuple[int, bool]:
            end = write().last_offset + 1
            return end, self._partition(index).is_committed(end)

        return shard.write_marker(producer_id, append, is_commit=is_commit)

    def when_committed(self, shard: Shard[Any], offset: int, done: Callable[[ErrorCode], None]) -> None:
        self._partition(shard.index).when_committed(offset, self.now_ms() + self._commit_timeout_ms, done)

    def timer_key(self, machine_id: str, key: str) -> TimerKey:
        """Return the key under which the timer of a machine is set."""
        return (self.hosting.name, machine_id, key)

    def set_timer(self, key: TimerKey, at_ms: int, call: Callable[[], None]) -> None:
        self._timers.at(key, at_ms, call)

    def cancel_timer(self, key: TimerKey) -> None:
        self._timers.cancel(key)

    def step_failed(self, shard: Shard[Any], mistake: Exception) -> None:
        log.error("Shard made a mistake; its groups are loaded again", shard=shard.index, exc_info=mistake)
        self._drop(shard)
        self._reload(shard)

    def storage_failed(self, shard: Shard[Any], cause: Exception) -> None:
        """A1. Log the failure once for each cause, and load the shard again later.

        A change of the leader is not a failure: the partition's next state decides whether this broker leads.
        """
        if isinstance(cause, NotLeader):
            log.info("Shard lost its leadership", shard=shard.index, cause=str(cause))
        elif self._logged_failures.is_new(shard.index, str(cause), self.now_ms()):
            mistake = None if isinstance(cause, EXPECTED_FAILURES) else cause
            event = "Shard lost its log; its groups are loaded again"
            log.error(event, shard=shard.index, cause=str(cause), exc_info=mistake)
        was_standby = shard.index in self._standbys
        self._drop(shard)
        call = partial(self.follow, shard.index) if was_standby else partial(self._reload, shard)
        self._timers.at(self._reload_key(shard), self.now_ms() + RELOAD_AFTER_MS, call)

    def _reload_key(self, shard: Shard[M]) -> tuple[str, str, int]:
        return "reload", self.hosting.name, shard.index

    def _reload(self, shard: Shard[M]) -> None:
        if shard.is_leader and shard.state is ShardState.DOWN:
            self._load(shard)


def portions(records: list[Encoded], units: Units = tuple) -> Iterable[list[Encoded]]:
    """Split records into runs of at most about BATCH_RECORD_BYTES_MAX, not inside a unit; no records give no run."""
    if not records:
        return ()
    return (records,) if pairs_bytes(records) <= BATCH_RECORD_BYTES_MAX else _split(records, dict(units()))


def _split(records: list[Encoded], unit_ends: dict[int, int]) -> Iterator[list[Encoded]]:
    sizes = [len(key or b"") + len(value or b"") for key, value in records]
    start = size = at = 0
    while at < len(records):
        end = unit_ends.get(at, at + 1)
        unit_size = sum(sizes[at:end])
        size += unit_size
        if size > BATCH_RECORD_BYTES_MAX and at > start:
            yield records[start:at]
            start, size = at, unit_size
        at = end
    yield records[start:]
