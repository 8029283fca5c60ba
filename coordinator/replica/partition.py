"""A replica of a partition on this broker: its log, its replica state, and the waits for its offsets.

Laws
    L1   An acknowledged record stays at its offset; the high watermark only grows.
    A1   A storage failure takes this partition offline, with its reason, and harms no other.
    A7   A read that meets damage among flushed records fails alone; the partition stays online.
    A2   Watchers are called when the high watermark moves, when the partition goes offline or away, and when the leader
         or its epoch changes.
    RE5   Only a leader appends records of producers and of this broker, and stamps them with its epoch; only a follower
         appends records of a leader, and truncates.
    L5   Each `when_committed` and `when_flushed` is answered exactly once, in the order of offsets, by its deadline.

The file is longer than 400 lines because one class owns what happens to a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import TYPE_CHECKING, NewType, Protocol, assert_never

import structlog

from rota.coordinator.log.contract import (
    Appended,
    AppendRefused,
    DamagedLog,
    Log,
    LogConfig,
    Pair,
    StorageFailed,
    TimedOffset,
)
from rota.coordinator.log.errors import NotLeader
from rota.coordinator.log.producers import Verification
from rota.coordinator.log.transactions import AbortedTransaction
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica.state import (
    MOVED,
    REPLICA_LAG_MS_MAX,
    UNKNOWN_OFFSET,
    Effects,
    ExpandIsr,
    HighWatermarkMoved,
    ReplicaState,
    Role,
    ShrinkIsr,
)
from rota.coordinator.replica.waits import Complete
from rota.coordinator.scheduling.timers import TimerHeap
from rota.protocol.errors import ErrorCode
from rota.protocol.records.control import Marker
from rota.protocol.records.fast import Record
from rota.protocol.records.record import write_batch

if TYPE_CHECKING:
    from rota.coordinator.log.file_part import Records

log = structlog.get_logger("rota.partition")

_LEADER = Role.LEADER  # bound once: each append looks at it
_NONE = ErrorCode.NONE

Watch = NewType("Watch", int)
Watches = dict[Watch, Callable[[], None]]
Done = Callable[[ErrorCode], None]


class TimerService(Protocol):
    """Timers by key; setting one again moves it."""

    def at(self, key: object, at_ms: int, call: Callable[[], None]) -> None:
        """Call `call` at that time."""

    def cancel(self, key: object) -> None:
        """Forget the timer of `key`, if there is one."""


class FlushWorker(Protocol):
    """Group flush, off the loop (`durability.Durability`)."""

    def flush_soon(self, partition: Partition) -> None:
        """Flush the log and call `partition.flushed()`."""


class NoFlushWorker:
    """For a partition whose owner flushes by hand and calls `flushed`."""

    def flush_soon(self, partition: Partition) -> None:
        pass


class IsrWriter(Protocol):
    """Writes ISR changes to the partition's state node (`isr_changes.IsrChanges`)."""

    def change(self, partition: Partition, isr: frozenset[int], lacking: frozenset[int] = frozenset()) -> None:
        """Write that ISR, then call `partition.isr_changed` or `isr_refused` of it. `lacking` leave the ELR, too."""


class NoIsrWriter:
    """For a partition whose owner answers `state` by hand: ISR changes stay pending."""

    def change(self, partition: Partition, isr: frozenset[int], lacking: frozenset[int] = frozenset()) -> None:
        pass


class Partition:
    """A partition with its log. Without `placed` it leads alone, in `leader_epoch`; `apply` gives it another role.

    `offline` is the reason why it cannot be used, None while it can. Appends to a topic with `flush.messages` are
    flushed by `flush_worker`; `timers` end waits at their deadlines.
    """

    __slots__ = (
        "_append_watches",
        "_armed_ms",
        "_completions",
        "_damage",
        "_flush_worker",
        "_isr_writer",
        "_log",
        "_next",
        "_placed",
        "_start_watches",
        "_timers",
        "_watches",
        "bytes_in",
        "bytes_out",
        "index",
        "offline",
        "on_truncated",
        "pending_cut",
        "records_in",
        "state",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        leader_epoch: int,
        log: Log | None,
        *,
        broker_id: int = 0,
        high_watermark: int = 0,
        timers: TimerService | None = None,
        flush_worker: FlushWorker | None = None,
        isr_writer: IsrWriter | None = None,
        lag_ms_max: int = REPLICA_LAG_MS_MAX,
        placed: PartitionState | None = None,
        now_ms: int = 0,
    ) -> None:
        """`high_watermark` is that of the checkpoint. A broker that is alone moves it to its log's end at once."""
        self.topic, self.topic_id, self.index = topic, topic_id, index
        self.offline: str | None = None
        self.bytes_in = self.records_in = 0  # of producers, since this broker started
        self.bytes_out = 0  # to consumers
        self._log = log
        self._timers: TimerService = TimerHeap() if timers is None else timers
        self._flush_worker: FlushWorker = NoFlushWorker() if flush_worker is None else flush_worker
        self._isr_writer: IsrWriter = NoIsrWriter() if isr_writer is None else isr_writer
        self._watches = Watches()
        self._append_watches, self._start_watches = Watches(), Watches()
        self.pending_cut: Callable[[], None] | None = None  # cancels a truncation that has begun
        self.on_truncated: Callable[[], None] = _ignore  # called when a follower's log has lost records
        self._next = 0
        self._armed_ms: int | None = None
        self._damage: str | None = None  # that the last such read met
        self._completions: list[tuple[Done, ErrorCode]] | None = None  # not None while they are called
        self.state = _state_of(log, broker_id, high_watermark, lag_ms_max)
        self._placed: PartitionState | None = None
        if placed is None:
            self.lead(leader_epoch)
        else:
            self.apply(placed, now_ms)

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}{' offline' if self.offline else ''}>"

    @property
    def error(self) -> ErrorCode:
        """The error code of requests to it: NONE, or KAFKA_STORAGE_ERROR while it is offline."""
        return ErrorCode.NONE if self.offline is None else ErrorCode.KAFKA_STORAGE_ERROR

    @property
    def log(self) -> Log:
        """Raises StorageFailed while offline."""
        if self.offline is not None or self._log is None:
            raise StorageFailed(f"{self.topic}-{self.index} is offline: {self.offline}")
        return self._log

    @property
    def leader_epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads it, as far as it knows."""
        return self.state.role is _LEADER

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def high_watermark(self) -> int:
        """The end offset for consumers. Raises StorageFailed while offline."""
        self.log  # noqa: B018 - raises when the partition is offline
        return self.state.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The end offset for consumers with read_committed. Raises StorageFailed while offline."""
        log = self.log
        return max(log.producers.last_stable_offset(self.state.high_watermark), log.log_start_offset)

    # ---- records

    def append(self, batches: bytes | memoryview, now_ms: int, verification: Verification | None = None) -> Appended:
        """Append a producer's batches. Raises AppendRefused (nothing written) or StorageFailed (offline from now on).

        The first batch of a transaction needs a verification: see `Log.append`.
        The code of AppendRefused is NOT_LEADER_OR_FOLLOWER if this broker does not lead the partition.
        """
        if self.state.role is not _LEADER and self.offline is None:
            raise self._not_led()
        try:
            log, epoch = self.log, self.state.leader_epoch
            appended = log.append(batches, leader_epoch=epoch, now_ms=now_ms, verification=verification)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        if not appended.duplicate:
            self.bytes_in += len(batches)
            self.records_in += appended.last_offset - appended.base_offset + 1
        self._appended(log.log_end_offset)
        return appended

    def append_marker(
        self, marker: Marker, *, producer_id: int, producer_epoch: int, now_ms: int, is_v2: bool = False
    ) -> Appended:
        """End a producer's transaction; see `Log.append_marker`. Failures are those of `append`."""
        if self.state.role is not _LEADER and self.offline is None:
            raise self._not_led()
        try:
            log = self.log
            log.producers.committed(self.state.high_watermark)
            appended = log.append_marker(
                marker,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                leader_epoch=self.state.leader_epoch,
                now_ms=now_ms,
                is_v2=is_v2,
            )
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self._appended(log.log_end_offset)
        return appended

    def _not_led(self) -> AppendRefused:
        return AppendRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic}-{self.index} is not led here")

    def append_pairs(
        self,
        pairs: list[Pair],
        now_ms: int,
        leader_epoch: int | None = None,
        producer: tuple[int, int] | None = None,
    ) -> Appended:
        """Append records of this broker as one batch, in the transaction of `producer` (id, epoch) if there is one.

        Raises StorageFailed (offline from now on). It is also raised, and nothing written, if this broker does not lead
        the partition or leads it in another epoch than `leader_epoch`.
        """
        self._check_leads(leader_epoch)
        try:
            log, epoch = self.log, self.state.leader_epoch
            if producer is None:
                appended = log.append_pairs(pairs, leader_epoch=epoch, now_ms=now_ms)
            else:
                records = [Record(0, now_ms, key, value) for key, value in pairs]
                batch = write_batch(records, producer_id=producer[0], producer_epoch=producer[1], is_transactional=True)
                appended = log.append_trusted(batch, leader_epoch=epoch, now_ms=now_ms)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self._appended(appended.last_offset + 1)
        return appended

    def append_encoded(self, records: bytes, count: int, now_ms: int, leader_epoch: int) -> int:
        """As `append_pairs`, of records that are encoded already; see `Log.append_encoded`. Returns the log end."""
        self._check_leads(leader_epoch)
        try:
            end = self.log.append_encoded(records, count, leader_epoch=leader_epoch, now_ms=now_ms)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self._appended(end)
        return end

    def _check_leads(self, leader_epoch: int | None) -> None:
        state = self.state
        if self.offline is None and (
            state.role is not _LEADER or (leader_epoch is not None and leader_epoch != state.leader_epoch)
        ):
            raise NotLeader(f"{self.topic}-{self.index} is not led here in epoch {leader_epoch}")

    def read(
        self,
        offset: int,
        bytes_max: int,
        *,
        until: int | None = None,
        first_whole: bool = True,
        wait: bool = True,
        uncommitted: bool = False,
        to_send: bool = False,
    ) -> Records:
        """Return batches from the one that has `offset`, up to the high watermark or to `until`; see `Log.read`.

        `uncommitted` reads up to the log end, as followers do. Raises OffsetOutOfRange, StorageFailed, and NotCached
        if `wait` is false. DamagedLog leaves the partition online: a recovery would not repair the damage, or would
        truncate the log there. `to_send`: many bytes may come as a part of a file, see `Log.read_to_send`.
        """
        if until is None and not uncommitted:
            until = self.state.high_watermark
        try:
            if to_send and not wait:
                return self.log.read_to_send(offset, bytes_max, until=until, first_whole=first_whole)
            return self.log.read(offset, bytes_max, until=until, first_whole=first_whole, wait=wait)
        except StorageFailed as error:
            self._read_failed(error)
            raise

    def aborted_transactions(self, offset: int, size_bytes: int, *, wait: bool = True) -> list[AbortedTransaction]:
        """See `Log.aborted_transactions`. Failures are those of `read`."""
        try:
            return self.log.aborted_transactions(offset, size_bytes, wait=wait)
        except StorageFailed as error:
            self._read_failed(error)
            raise

    def offset_at(self, timestamp_ms: int, *, wait: bool = True) -> TimedOffset | None:
        """See `Log.offset_at`. Failures are those of `read`."""
        try:
            return self.log.offset_at(timestamp_ms, wait=wait)
        except StorageFailed as error:
            self._read_failed(error)
            raise

    def max_timestamp(self, *, wait: bool = True) -> TimedOffset | None:
        """See `Log.max_timestamp`. Failures are those of `read`."""
        try:
            return self.log.max_timestamp(wait=wait)
        except StorageFailed as error:
            self._read_failed(error)
            raise

    def _read_failed(self, error: StorageFailed) -> None:
        reason = str(error)
        if not isinstance(error, DamagedLog):
            self.fail(reason)
        elif self._damage != reason:  # log it once, although a consumer retries
            self._damage = reason
            log.error("Log is damaged", topic=self.topic, partition=self.index, reason=reason)

    def begin_delete_before(self, offset: int) -> Callable[[], None] | None:
        """Move the log start to `offset`. Return the function that writes it to disk; see `Log.begin_delete_before`.

        The followers' fetches that wait are answered, so that their logs start there soon, too.
        Raises OffsetOutOfRange, StorageFailed. The caller calls `log_failed` if the returned function raises.
        """
        try:
            write = self.log.begin_delete_before(offset)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self.log_start_moved()
        self._call(self._append_watches)
        return write

    def deletion_error(self, offset: int, live: Container[int]) -> ErrorCode | None:
        """NONE when no replica on the `live` brokers has records before `offset`; None while one of them has.

        Else the code of a broker that does not lead.
        """
        if not self.is_leader:
            return self.state.role_error()
        return _NONE if self.state.low_watermark(live) >= offset else None

    # ---- waiting

    def is_committed(self, offset: int) -> bool:
        """Return whether `when_committed` would call `done(NONE)` at once."""
        return self.state.committed_error(offset) is _NONE

    def when_committed(self, offset: int, deadline_ms: int, done: Done) -> None:
        """Call `done` once, when the high watermark reaches `offset`, which may be now.

        Its argument is NONE, NOT_ENOUGH_REPLICAS_AFTER_APPEND if the ISR is too small by then, REQUEST_TIMED_OUT at
        `deadline_ms`, NOT_LEADER_OR_FOLLOWER when the broker stops leading, or KAFKA_STORAGE_ERROR.
        """
        error = self.state.committed_error(offset)
        if error is None:
            self.state.await_committed(offset, deadline_ms, done)
            self._arm(deadline_ms)
        elif self._completions is None:
            done(error)
        else:
            self._completions.append((done, error))

    def when_flushed(self, offset: int, deadline_ms: int, done: Done) -> None:
        """Like `when_committed`, but wait for the flush of the leader only (acks=1); at once if flushing is off."""
        error = self.state.flushed_error(offset)
        if error is None:
            self.state.await_flushed(offset, deadline_ms, done)
            self._arm(deadline_ms)
        elif self._completions is None:
            done(error)
        else:
            self._completions.append((done, error))

    def watch(self, call: Callable[[], None]) -> Watch:
        """Call `call` when the high watermark moves or the partition fails, until `unwatch`.

        It runs inside the append that moved the high watermark, so it must be quick.
        """
        self._next += 1
        watch = Watch(self._next)
        self._watches[watch] = call
        return watch

    def watch_appends(self, call: Callable[[], None]) -> Watch:
        """Like `watch`, but call it when the log grows: for the fetches of followers."""
        self._next += 1
        watch = Watch(self._next)
        self._append_watches[watch] = call
        return watch

    def watch_log_starts(self, call: Callable[[], None]) -> Watch:
        """Like `watch`, but call it when the low watermark may have moved: for DeleteRecords."""
        self._next += 1
        watch = Watch(self._next)
        self._start_watches[watch] = call
        return watch

    def unwatch(self, watch: Watch) -> None:
        """Remove the watch. A second call does nothing."""
        for watches in (self._watches, self._append_watches, self._start_watches):
            watches.pop(watch, None)

    # ---- leader and followers

    def is_placed_as(self, placed: PartitionState) -> bool:
        """Whether this very state was applied last."""
        return self._placed is placed

    def apply(self, placed: PartitionState, now_ms: int) -> None:
        """Lead or follow according to the partition's state in the cluster. A state older than the last is ignored."""
        last = self._placed
        if last is not None and (placed.leader_epoch, placed.version) < (last.leader_epoch, last.version):
            return
        self._placed, state = placed, self.state
        before = state.role, state.leader_epoch
        if self.pending_cut is not None and (placed.leader == state.broker_id or placed.leader_epoch != before[1]):
            self.pending_cut()  # another ISR in the same leader epoch leaves the truncation
        if placed.leader == state.broker_id:
            effects = state.become_leader(placed.leader_epoch, placed.replicas, placed.isr, now_ms, placed.elr)
            self._perform(effects)
        else:
            self._perform(state.become_follower(placed.leader_epoch))
        if (state.role, state.leader_epoch) != before:
            self._call_watches()
            self._call(self._append_watches)
        self._call(self._start_watches)

    def follower_fetched(
        self, replica_id: int, offset: int, now_ms: int, log_start_offset: int = UNKNOWN_OFFSET
    ) -> None:
        """A follower fetches from `offset`, so it has all earlier records. Unknown followers change nothing."""
        self._perform(self.state.follower_fetched(replica_id, offset, now_ms, log_start_offset))
        if self._start_watches:
            self._call(self._start_watches)

    def live_brokers_changed(self) -> None:
        """RE9. A replica that holds the low watermark back may be dead now."""
        self._call(self._start_watches)

    def isr_changed(self, leader_epoch: int, isr: Iterable[int], now_ms: int) -> None:
        """The ISR change that the leader of that epoch has requested is written."""
        if leader_epoch == self.state.leader_epoch:
            self._perform(self.state.isr_changed(isr, now_ms))

    def isr_refused(self, leader_epoch: int) -> None:
        """The ISR change that the leader of that epoch has requested was refused and will not be written."""
        if leader_epoch == self.state.leader_epoch:
            self._perform(self.state.isr_refused())

    def tick(self, now_ms: int) -> None:
        """Remove followers that lag from the ISR. Call it at least every half of replica.lag.time.max.ms."""
        if self.state.has_followers:
            self._perform(self.state.tick(now_ms))

    def log_grown(self) -> None:
        """The follower's log has more records of its leader."""
        self._appended(self.log.log_end_offset)

    def log_truncated(self) -> None:
        """The follower's log has lost records."""
        log = self.log
        self.state.truncated(log.log_start_offset, log.log_end_offset)
        self.on_truncated()

    def leader_committed(self, high_watermark: int) -> None:
        """Take the high watermark of the leader."""
        self._perform(self.state.leader_committed(high_watermark))

    # ---- events

    def lead(self, leader_epoch: int) -> None:
        """Lead in that epoch, alone: this broker is the only replica."""
        alone = (self.state.broker_id,)
        self._perform(self.state.become_leader(leader_epoch, alone, alone, 0))

    def flushed(self) -> None:
        """More of the log is on the medium. The flush worker calls it."""
        log = self._log
        if log is not None and self.offline is None:
            self._perform(self.state.flushed(log.log_end_offset - log.unflushed_messages))

    def log_start_moved(self) -> None:
        """Retention has deleted the oldest segments."""
        self._perform(self.state.log_start_moved(self.log.log_start_offset))

    def configure(self, config: LogConfig) -> None:
        """Apply new log settings. The high watermark does not change. Raises StorageFailed while offline."""
        self.log.config = config
        self._perform(
            self.state.configure(
                flushes=config.flush_messages is not None, min_insync_replicas=config.min_insync_replicas
            )
        )
        if config.flush_messages is not None and self.log.unflushed_messages:
            self._flush_worker.flush_soon(self)

    def fail(self, reason: str) -> None:
        """Take the partition offline and log the reason. The first reason is kept."""
        if self.offline is None:
            log.error("Partition offline", topic=self.topic, partition=self.index, reason=reason)
            self._stop(reason, ErrorCode.KAFKA_STORAGE_ERROR)

    def log_failed(self, failed: Log, reason: str) -> None:
        """Like `fail`, unless the partition was reopened with another log since the work on the old log began."""
        if failed is self._log:
            self.fail(reason)

    @property
    def failed_log_end_offset(self) -> int:
        """The end of the log when the partition went offline: recovery that finds less has lost records.

        0 when the log could not be opened: then the checkpoint of the high watermark is what is known.
        """
        return 0 if self._log is None else self._log.log_end_offset

    def close(self) -> None:
        """The topic was deleted, or the broker stops: all waits end with NOT_LEADER_OR_FOLLOWER."""
        if self.offline is None:
            self._stop("it is no longer here", ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def reopen(self, log: Log, placed: PartitionState, now_ms: int) -> None:
        """Use an offline partition again, with its recovered log.

        A leader's epoch is a new one, because the tail of its log may be lost.
        """
        self._log, self.offline = log, None
        self.state.reopen(log.log_start_offset, log.log_end_offset, log.log_end_offset - log.unflushed_messages)
        self.configure(log.config)  # before it leads: the high watermark must not pass what is flushed
        self.apply(placed, now_ms)

    # ---- effects

    def _appended(self, log_end_offset: int) -> None:
        if self.state.flushes:
            self._flush_worker.flush_soon(self)
        self._perform(self.state.appended(log_end_offset))
        if self._append_watches:
            self._call(self._append_watches)

    def _stop(self, reason: str, error: ErrorCode) -> None:
        self.offline = reason
        self._timers.cancel(self._timer_key)
        self._armed_ms = None
        self._perform(self.state.fail(error))
        self._call_watches()
        self._call(self._append_watches)
        self._call(self._start_watches)

    def _perform(self, effects: Effects[Done]) -> None:
        if effects is MOVED:
            self._call_watches()
            return
        completions: list[tuple[Done, ErrorCode]] = []
        for effect in effects:
            match effect:
                case HighWatermarkMoved():
                    self._call_watches()
                case Complete(token=done, error=error):
                    completions.append((done, error))
                case ShrinkIsr(isr, lacking):
                    self._isr_writer.change(self, isr, lacking)
                case ExpandIsr(isr):
                    self._isr_writer.change(self, isr)
                case _:
                    assert_never(effect)
        if completions:
            self._complete(completions)

    def _complete(self, completions: list[tuple[Done, ErrorCode]]) -> None:
        """Call each `done`, after those that are being called: one of them may complete other waits."""
        if self._completions is not None:
            self._completions += completions
            return
        self._completions = completions
        try:
            for done, error in completions:
                try:
                    done(error)
                except Exception as mistake:  # a failing callback must not prevent the others
                    log.error("Answer of a wait failed", partition=repr(self), exc_info=mistake)
        finally:
            self._completions = None

    def _call_watches(self) -> None:
        if self._watches:
            for call in list(self._watches.values()):
                call()

    def _call(self, watches: Watches) -> None:
        for call in list(watches.values()):
            call()

    # ---- deadlines: one timer per partition, set while something waits

    def _arm(self, deadline_ms: int) -> None:
        if self._armed_ms is None or deadline_ms < self._armed_ms:
            self._armed_ms = deadline_ms
            self._timers.at(self._timer_key, deadline_ms, partial(self._expire, deadline_ms))

    @property
    def _timer_key(self) -> tuple[str, bytes, int]:
        return "partition", self.topic_id, self.index

    def _expire(self, now_ms: int) -> None:
        self._armed_ms = None
        self._perform(self.state.tick(now_ms))
        next_ms = self.state.next_deadline_ms
        if next_ms is not None:
            self._arm(next_ms)


def _ignore() -> None:
    pass


def _state_of(log: Log | None, broker_id: int, high_watermark: int, lag_ms_max: int) -> ReplicaState[Done]:
    if log is None:
        return ReplicaState(broker_id, lag_ms_max=lag_ms_max)
    return ReplicaState(
        broker_id,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=high_watermark,
        flushed_offset=log.log_end_offset - log.unflushed_messages,
        flushes=log.config.flush_messages is not None,
        min_insync_replicas=log.config.min_insync_replicas,
        lag_ms_max=lag_ms_max,
    )
