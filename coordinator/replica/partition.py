"""One partition that lives on this broker: its log, its state as a replica, and what waits for it.

Laws
    L1   An acknowledged record stays at its offset; the high watermark only grows.
    A1   A storage failure takes this partition offline, with its reason, and harms no other.
    A2   Watchers are called when the high watermark moves, and when the partition goes offline or away.
    L5   Each `when_committed` and `when_flushed` is answered exactly once, in the order of offsets, by its deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NewType, Protocol, assert_never

import structlog

from rota.coordinator.log.contract import Appended, Log, LogConfig, Pair, StorageFailed
from rota.coordinator.replica.state import MOVED, Effects, ExpandIsr, HighWatermarkMoved, ReplicaState, ShrinkIsr
from rota.coordinator.replica.waits import Complete
from rota.coordinator.scheduling.timers import TimerHeap
from rota.protocol.errors import ErrorCode

log = structlog.get_logger("rota.partition")

Watch = NewType("Watch", int)
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


class Partition:
    """A partition with its log, the leader until it hears otherwise, with itself as the ISR.

    `offline` is the reason why it cannot be used, None while it can. Appends to a topic with `flush.messages` are
    flushed by `flush_worker`; `timers` end waits at their deadlines.
    """

    __slots__ = (
        "_armed_ms",
        "_completions",
        "_flush_worker",
        "_log",
        "_next",
        "_timers",
        "_watches",
        "index",
        "offline",
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
    ) -> None:
        """`high_watermark` is that of the checkpoint. A broker that is alone moves it to its log's end at once."""
        self.topic, self.topic_id, self.index = topic, topic_id, index
        self.offline: str | None = None
        self._log = log
        self._timers: TimerService = TimerHeap() if timers is None else timers
        self._flush_worker: FlushWorker = NoFlushWorker() if flush_worker is None else flush_worker
        self._watches: dict[Watch, Callable[[], None]] = {}
        self._next = 0
        self._armed_ms: int | None = None
        self._completions: list[tuple[Done, ErrorCode]] | None = None  # not None while they are called
        self.state = _state_of(log, broker_id, high_watermark)
        self.lead(leader_epoch)

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}{' offline' if self.offline else ''}>"

    @property
    def error(self) -> ErrorCode:
        """What the wire says about using it now: NONE or KAFKA_STORAGE_ERROR."""
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
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def high_watermark(self) -> int:
        """What consumers may read up to. Raises StorageFailed while offline."""
        self.log  # noqa: B018 - raises when the partition is offline
        return self.state.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """What consumers of committed transactions may read up to. Raises StorageFailed while offline."""
        self.log  # noqa: B018 - raises when the partition is offline
        return self.state.last_stable_offset

    # ---- records

    def append(self, batches: bytes | memoryview, now_ms: int) -> Appended:
        """A producer's batches. Raises AppendRefused (nothing written) or StorageFailed (offline from now on)."""
        try:
            appended = self.log.append(batches, leader_epoch=self.state.leader_epoch, now_ms=now_ms)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self._appended()
        return appended

    def append_pairs(self, pairs: list[Pair], now_ms: int) -> Appended:
        """The broker's own records, as one batch. Raises StorageFailed (offline from now on)."""
        try:
            appended = self.log.append_pairs(pairs, leader_epoch=self.state.leader_epoch, now_ms=now_ms)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self._appended()
        return appended

    def read(self, offset: int, bytes_max: int, *, first_whole: bool = True, wait: bool = True) -> bytes:
        """Batches from the one holding `offset`, up to the high watermark; see `Log.read`.

        Raises OffsetOutOfRange, StorageFailed, and NotCached when `wait` is false.
        """
        try:
            return self.log.read(offset, bytes_max, until=self.state.high_watermark, first_whole=first_whole, wait=wait)
        except StorageFailed as error:
            self.fail(str(error))
            raise

    def begin_delete_before(self, offset: int) -> Callable[[], None] | None:
        """Move the log start up to `offset`. Returns what writes it to the medium; see `Log.begin_delete_before`.

        Raises OffsetOutOfRange, StorageFailed. The caller tells `log_failed` when the returned call raises.
        """
        try:
            write = self.log.begin_delete_before(offset)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self.log_start_moved()
        return write

    # ---- waiting

    def when_committed(self, offset: int, deadline_ms: int, done: Done) -> None:
        """Call `done` once, when the high watermark reaches `offset`: at once when it is there already.

        `done` gets NONE, NOT_ENOUGH_REPLICAS_AFTER_APPEND when the ISR is too small by then, REQUEST_TIMED_OUT at
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
        """As `when_committed`, for the leader's own medium alone (acks=1); at once where no flushing is asked for."""
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

    def unwatch(self, watch: Watch) -> None:
        """A second call does nothing."""
        self._watches.pop(watch, None)

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
        """Retention has deleted the oldest segments, committed or not."""
        self._perform(self.state.log_start_moved(self.log.log_start_offset))

    def configure(self, config: LogConfig) -> None:
        """Keep the log as `config` says from now on. The high watermark stays. Raises StorageFailed while offline."""
        self.log.config = config
        self._perform(
            self.state.configure(
                flushes=config.flush_messages is not None, min_insync_replicas=config.min_insync_replicas
            )
        )
        if config.flush_messages is not None and self.log.unflushed_messages:
            self._flush_worker.flush_soon(self)

    def fail(self, reason: str) -> None:
        """Take it offline and say why in the log. The first reason stays."""
        if self.offline is None:
            log.error("Partition offline", topic=self.topic, partition=self.index, reason=reason)
            self._stop(reason, ErrorCode.KAFKA_STORAGE_ERROR)

    def log_failed(self, failed: Log, reason: str) -> None:
        """As `fail`, unless the partition uses another log by now: work on the old one ended after the reopening."""
        if failed is self._log:
            self.fail(reason)

    def close(self) -> None:
        """The topic was deleted, or the broker stops: whatever waits gets NOT_LEADER_OR_FOLLOWER."""
        if self.offline is None:
            self._stop("it is no longer here", ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def reopen(self, log: Log, leader_epoch: int) -> None:
        """Use an offline partition again, with its recovered log. The epoch is a new one: its tail may be lost."""
        self._log, self.offline = log, None
        self.state.reopen(log.log_start_offset, log.log_end_offset, log.log_end_offset - log.unflushed_messages)
        self.configure(log.config)  # before it leads: the high watermark must not pass what is flushed
        self.lead(leader_epoch)
        self._call_watches()

    # ---- effects

    def _appended(self) -> None:
        log, state = self._log, self.state
        assert log is not None
        if state.flushes:
            self._flush_worker.flush_soon(self)
        self._perform(state.appended(log.log_end_offset))

    def _stop(self, reason: str, error: ErrorCode) -> None:
        self.offline = reason
        self._timers.cancel(self._timer_key)
        self._armed_ms = None
        self._perform(self.state.fail(error))
        self._call_watches()

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
                case ShrinkIsr() | ExpandIsr():
                    raise AssertionError("a broker that is alone has no followers")
                case _:
                    assert_never(effect)
        if completions:
            self._complete(completions)

    def _complete(self, completions: list[tuple[Done, ErrorCode]]) -> None:
        """Call each `done`, after those that are being called: what one does may complete others."""
        if self._completions is not None:
            self._completions += completions
            return
        self._completions = completions
        try:
            for done, error in completions:
                try:
                    done(error)
                except Exception as mistake:  # one mistake must not keep others from their answers
                    log.error("Answer of a wait failed", partition=repr(self), exc_info=mistake)
        finally:
            self._completions = None

    def _call_watches(self) -> None:
        if self._watches:
            for call in list(self._watches.values()):
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


def _state_of(log: Log | None, broker_id: int, high_watermark: int) -> ReplicaState[Done]:
    if log is None:
        return ReplicaState(broker_id)
    return ReplicaState(
        broker_id,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=high_watermark,
        flushed_offset=log.log_end_offset - log.unflushed_messages,
        flushes=log.config.flush_messages is not None,
        min_insync_replicas=log.config.min_insync_replicas,
    )
