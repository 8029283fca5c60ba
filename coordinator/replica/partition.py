"""One partition that lives on this broker: its log, its high watermark, and who waits for its next record.

Laws
    L1   An acknowledged record stays at its offset; the high watermark only grows.
    A1   A storage failure takes this partition offline, with its reason, and harms no other.
    A2   Whoever waits is told after every append, and when the partition goes offline or away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NewType

import structlog

from rota.coordinator.log.contract import Appended, Log, Pair, StorageFailed
from rota.protocol.errors import ErrorCode

log = structlog.get_logger("rota.partition")

Waiter = NewType("Waiter", int)


class Partition:
    """A partition with its log. `offline` is the reason why it cannot be used, None while it can."""

    __slots__ = ("_log", "_next", "_waiters", "index", "leader_epoch", "offline", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, index: int, leader_epoch: int, log: Log | None) -> None:
        self.topic, self.topic_id, self.index, self.leader_epoch = topic, topic_id, index, leader_epoch
        self.offline: str | None = None
        self._log = log
        self._waiters: dict[Waiter, Callable[[], None]] = {}
        self._next = 0

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
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def high_watermark(self) -> int:
        """What consumers may read up to: the log's end or, where flushing is asked for, what is on the medium (O1)."""
        log = self.log
        if log.config.flush_messages is None:
            return log.log_end_offset
        return log.log_end_offset - log.unflushed_messages

    def append(self, batches: bytes | memoryview, now_ms: int) -> Appended:
        """A producer's batches. Raises AppendRefused (nothing written) or StorageFailed (offline from now on)."""
        try:
            appended = self.log.append(batches, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self._wake()
        return appended

    def append_pairs(self, pairs: list[Pair], now_ms: int) -> Appended:
        """The broker's own records, as one batch. Raises StorageFailed (offline from now on)."""
        try:
            appended = self.log.append_pairs(pairs, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except StorageFailed as error:
            self.fail(str(error))
            raise
        self._wake()
        return appended

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Batches from the one holding `offset`, up to the high watermark. Raises OffsetOutOfRange, StorageFailed."""
        try:
            return self.log.read(offset, bytes_max, until=self.high_watermark)
        except StorageFailed as error:
            self.fail(str(error))
            raise

    def watch(self, call: Callable[[], None]) -> Waiter:
        """Have `call` told after every append until `unwatch`. It runs inside the append, so it must be quick."""
        self._next += 1
        waiter = Waiter(self._next)
        self._waiters[waiter] = call
        return waiter

    def unwatch(self, waiter: Waiter) -> None:
        """Forgetting twice is allowed: a waiter may be told that the partition goes while it leaves by itself."""
        self._waiters.pop(waiter, None)

    def flushed(self) -> None:
        """More of it is on the medium: who waits may read on."""
        self._wake()

    def fail(self, reason: str) -> None:
        """Take it offline and say why in the log. The first reason stays."""
        if self.offline is None:
            log.error("Partition offline", topic=self.topic, partition=self.index, reason=reason)
            self.offline = reason
            self._wake()

    def reopen(self, log: Log, leader_epoch: int) -> None:
        """Take it online again with its recovered log. The epoch is a new one: the log may have lost its tail."""
        self._log, self.leader_epoch, self.offline = log, leader_epoch, None
        self._wake()

    def gone(self) -> None:
        """The topic was deleted, or the broker stops: tell whoever still waits."""
        if self.offline is None:
            self.offline = "it is no longer here"
            self._wake()

    def _wake(self) -> None:
        if self._waiters:
            for call in list(self._waiters.values()):
                call()
