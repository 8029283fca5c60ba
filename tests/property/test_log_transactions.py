"""XL1-XL5: transactions in one log, against a model that is a list of batches, through crashes and clean-up.

The model knows which transaction each record belongs to and how that ended. The log knows it from batches, markers,
snapshots and indexes only. A reader that follows Kafka's rules for read_committed gets what the model has committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.contract.log_worlds import WORLDS, World
from tests.soak import examples
from tests.unit.coordinator.log.log_kit import append_marker, append_transactional, batch

from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.coordinator.log.transactions import AbortedTransaction
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import headers
from rota.protocol.records.control import read_marker
from rota.protocol.records.record import read_records

CONFIG = LogConfig(
    segment_bytes=600,
    index_interval_bytes=150,
    retention_ms=None,
    delete_retention_ms=1000,
    producer_id_expiration_ms=1,
)
PRODUCERS = (5, 6, 7)
NOW_MS = 1_000_000


@dataclass
class Written:
    """One batch of the model. `producer_id` is None outside of transactions; `ends` is the result of a marker."""

    base: int
    keys: tuple[bytes, ...]
    producer_id: int | None = None
    ends: bool | None = None

    @property
    def next_offset(self) -> int:
        return self.base + max(len(self.keys), 1)


@dataclass
class Transaction:
    producer_id: int
    first_offset: int
    marker_offset: int | None = None
    is_commit: bool = False


def transactions(batches: list[Written]) -> list[Transaction]:
    """Return the transactions of a list of batches, those of markers without records left out."""
    found: list[Transaction] = []
    running: dict[int, Transaction] = {}
    for written in batches:
        if written.producer_id is None:
            continue
        if written.ends is None:
            if written.producer_id not in running:
                running[written.producer_id] = Transaction(written.producer_id, written.base)
                found.append(running[written.producer_id])
        elif written.producer_id in running:
            ended = running.pop(written.producer_id)
            ended.marker_offset, ended.is_commit = written.base, written.ends
    return found


class TransactionMachine(RuleBasedStateMachine):
    world_name = ""
    world: World

    @initialize()
    def begin(self) -> None:
        self.world = WORLDS[self.world_name](CONFIG)
        self.batches: list[Written] = []
        self.forgotten: list[Written] = []  # below the log start
        self.start = self.finish = self.flushed = self.number = self.high_watermark = 0
        self.sequences: dict[int, int] = {}

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.end()

    # ---- writes

    @rule(producer_id=st.sampled_from(PRODUCERS), count=st.integers(1, 3))
    def write_in_transaction(self, producer_id: int, count: int) -> None:
        sequence = self._sequence(producer_id)
        keys = self._keys(count)
        base = append_transactional(self.world.log, producer_id, sequence, *((key, b"v" * 20) for key in keys))
        assert base == self.finish
        self._add(Written(base, keys, producer_id))

    @rule(count=st.integers(1, 3))
    def write_outside(self, count: int) -> None:
        keys = self._keys(count)
        base = self.world.log.append(batch(*((key, b"v") for key in keys)), leader_epoch=0, now_ms=NOW_MS).base_offset
        self._add(Written(base, keys))

    @rule(producer_id=st.sampled_from(PRODUCERS), is_commit=st.booleans())
    def end(self, producer_id: int, is_commit: bool) -> None:
        base = append_marker(self.world.log, producer_id, is_commit=is_commit)
        self._add(Written(base, (), producer_id, is_commit))

    @rule(producer_id=st.sampled_from(PRODUCERS))
    def write_without_verification(self, producer_id: int) -> None:
        """XL4: it is refused unless the transaction is open."""
        log, sequence = self.world.log, self._sequence(producer_id)
        if log.producers.has_open_transaction(producer_id, 0):
            return
        log.producers.begin_verification(producer_id, 0, sequence, 0)
        append_marker(log, producer_id, is_commit=False)
        self._add(Written(self.finish, (), producer_id, False))
        data = batch(
            (b"k", b"v"), producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True
        )
        with pytest.raises(AppendRefused) as refused:
            log.append(data, leader_epoch=0, now_ms=0)
        assert refused.value.code is ErrorCode.INVALID_TXN_STATE

    # ---- what happens to logs

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        """A follower fetches from the end of a batch."""
        ends = {self.high_watermark, *(written.next_offset for written in self.batches)}
        self._committed(data.draw(st.sampled_from(sorted(end for end in ends if end >= self.high_watermark))))

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """As a follower does: never below the high watermark."""
        offset = data.draw(st.integers(self.high_watermark, self.finish))
        self.world.log.truncate(offset)
        self._lose(self.world.log.log_end_offset)

    @rule(data=st.data())
    def delete_before(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from([written.base for written in self.batches] or [self.start]))
        if offset <= self.high_watermark:
            self.world.log.delete_before(offset)
            self._forget()

    @rule(retention_bytes=st.integers(0, 3000))
    def retain(self, retention_bytes: int) -> None:
        log = self.world.log
        log.config = replace(CONFIG, retention_bytes=retention_bytes)
        log.retain(0)
        log.config = CONFIG
        self._forget()

    @precondition(lambda self: self.batches)
    @rule(now_ms=st.sampled_from([NOW_MS, NOW_MS + 2000]))
    def compact(self, now_ms: int) -> None:
        """Every key is written once: only records of aborted transactions go."""
        log = self.world.log
        log.producers.committed(self.high_watermark)
        log.config = replace(CONFIG, compact=True)
        log.compact(now_ms, force=True)
        log.config = CONFIG

    @rule()
    def flush(self) -> None:
        self.world.log.flush()
        self.flushed = self.finish

    @rule()
    def reopen(self) -> None:
        self.world.reopen()
        self.flushed = self.finish

    @rule(tear=st.integers(0, 5000))
    def crash(self, tear: int) -> None:
        self.world.crash(tear)
        end = self.world.log.log_end_offset
        assert end >= self.flushed
        self._lose(end)

    # ---- what must hold

    @invariant()
    def the_last_stable_offset_is_that_of_the_model(self) -> None:
        """XL2. Also of transactions whose records were deleted or compacted, unless a crash took their snapshot."""
        if not hasattr(self, "batches"):
            return
        first = self._stable(self.batches)
        found = self.world.log.producers.last_stable_offset(self.high_watermark)
        if found < self.start:
            assert found in {each.first_offset for each in transactions(self.forgotten + self.batches)}
            found = max(found, self.start)
            first = min(first, found)
        assert found == first

    @invariant()
    def a_reader_gets_what_is_committed(self) -> None:
        """XL3, XL5: by the batches, and by the aborted transactions of each read."""
        if not hasattr(self, "batches"):
            return
        stable = max(self.world.log.producers.last_stable_offset(self.high_watermark), self.start)
        aborted = {
            (each.producer_id, each.first_offset)
            for each in transactions(self.forgotten + self.batches)
            if each.marker_offset is not None and not each.is_commit
        }
        committed = [
            key for written in self.batches if written.base < stable for key in self._visible(written, aborted)
        ]
        assert list(self._read_committed(stable)) == committed

    # ---- the model

    def _stable(self, batches: list[Written]) -> int:
        unstable = [
            each.first_offset
            for each in transactions(batches)
            if each.marker_offset is None or each.marker_offset >= self.high_watermark
        ]
        return min([*unstable, self.high_watermark])

    def _visible(self, written: Written, aborted: set[tuple[int, int]]) -> tuple[bytes, ...]:
        """Return the keys of a batch, none if its transaction was aborted."""
        for each in transactions(self.forgotten + self.batches):
            is_of_it = each.producer_id == written.producer_id and each.first_offset <= written.base
            if is_of_it and written.base < (each.marker_offset or self.finish) and written.ends is None:
                return () if (each.producer_id, each.first_offset) in aborted else written.keys
        return written.keys

    def _read_committed(self, stable: int) -> Iterator[bytes]:
        """Kafka's consumer: skip what the aborted transactions of the response name, until their abort markers."""
        log, offset = self.world.log, self.start
        while offset < stable:
            data = log.read(offset, 300, until=stable)
            if not data:
                return
            aborted = sorted(log.aborted_transactions(offset, len(data)), key=lambda each: each.first_offset)
            offset = yield from self._consume(data, offset, aborted)

    def _consume(self, data: bytes, offset: int, aborted: list[AbortedTransaction]) -> Iterator[bytes]:
        skipped: set[int] = set()
        for position, header in headers(data, cut=True):
            while aborted and aborted[0].first_offset <= header.last_offset:
                skipped.add(aborted.pop(0).producer_id)
            if header.is_control:
                marker = read_marker(data, position)
                if marker is not None and not marker.is_commit:
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                yield from (record.key or b"" for record in read_records(data, position) if record.offset >= offset)
            offset = header.next_offset
        return offset

    def _sequence(self, producer_id: int) -> int:
        producer = self.world.log.producers.get(producer_id)
        return 0 if producer is None else producer.last_sequence + 1

    def _keys(self, count: int) -> tuple[bytes, ...]:
        self.number += count
        return tuple(b"key-%05d" % (self.number - n) for n in range(count))

    def _add(self, written: Written) -> None:
        self.batches.append(written)
        self.finish = written.next_offset

    def _lose(self, end: int) -> None:
        """The log ends here now."""
        self.batches = [written for written in self.batches if written.next_offset <= end]
        self.forgotten = [written for written in self.forgotten if written.next_offset <= end]
        self.finish = end
        self.flushed = min(self.flushed, end)
        self._committed(min(self.high_watermark, end))
        self._forget()

    def _committed(self, high_watermark: int) -> None:
        self.high_watermark = self.world.high_watermark = high_watermark

    def _forget(self) -> None:
        """The log starts further on."""
        self.start = self.world.log.log_start_offset
        self._committed(max(self.high_watermark, self.start))
        self.forgotten += [written for written in self.batches if written.base < self.start]
        self.batches = [written for written in self.batches if written.base >= self.start]


class MemoryTransactions(TransactionMachine):
    world_name = "memory"


class DiskTransactions(TransactionMachine):
    world_name = "disk"


LAW = settings(
    max_examples=examples(60),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestMemory = MemoryTransactions.TestCase
TestMemory.settings = LAW
TestDisk = DiskTransactions.TestCase
TestDisk.settings = LAW
