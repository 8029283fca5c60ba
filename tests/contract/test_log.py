"""One contract for the log in memory and the log on disk: whatever is done to them, they hold what a list would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rota.coordinator.log.contract import Appended, AppendRefused, LogConfig, OffsetOutOfRange, Pair
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import Codec, check_batch, headers
from rota.protocol.records.fast import Record
from rota.protocol.records.record import read_all, read_records, write_batch

from .log_worlds import WORLDS, World

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, retention_ms=None, compact=False, message_bytes_max=600)
KEYS = (b"a", b"b", b"c", b"d")
NOW_MS = 1_000_000


@dataclass
class Kept:
    """What the model knows of one batch."""

    base: int
    last: int
    records: list[Record]


contents = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from(KEYS), st.none() | st.binary(max_size=40)), min_size=1, max_size=4
)


class LogMachine(RuleBasedStateMachine):
    """The model is a list of batches between a start and an end."""

    world_name = ""
    world: World

    @initialize()
    def begin(self) -> None:
        self.world = WORLDS[self.world_name](CONFIG)
        self.batches: list[Kept] = []
        self.start = self.finish = self.flushed = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.end()

    # ---- what is done to it

    @rule(batches=st.lists(contents, min_size=1, max_size=2), codec=st.sampled_from((Codec.NONE, Codec.GZIP)))
    def append(self, batches: list[list[tuple[int, bytes, bytes | None]]], codec: Codec) -> None:
        sent = [[Record(0, *record) for record in batch] for batch in batches]
        data = b"".join(write_batch(records, codec=codec) for records in sent)
        before = self.finish
        appended = self.world.log.append(data, leader_epoch=0, now_ms=NOW_MS)
        for records in sent:
            self._extend(records)
        assert appended == Appended(before, self.finish - 1)

    @rule(records=contents)
    def append_trusted(self, records: list[tuple[int, bytes, bytes | None]]) -> None:
        sent = [Record(0, *record) for record in records]
        appended = self.world.log.append_trusted(write_batch(sent), leader_epoch=0, now_ms=NOW_MS)
        assert appended == Appended(self.finish, self.finish + len(sent) - 1)
        self._extend(sent)

    @rule(records=contents)
    def append_pairs(self, records: list[tuple[int, bytes, bytes | None]]) -> None:
        pairs: list[Pair] = [(key, value) for _, key, value in records]
        appended = self.world.log.append_pairs(pairs, leader_epoch=0, now_ms=NOW_MS)
        assert appended == Appended(self.finish, self.finish + len(pairs) - 1)
        self._extend([Record(0, NOW_MS, key, value) for key, value in pairs])

    @rule(good=contents, bad=contents, flip=st.integers(21, 80))
    def append_of_a_damaged_batch_changes_nothing(self, good: Any, bad: Any, flip: int) -> None:
        damaged = bytearray(write_batch([Record(0, *record) for record in bad]))
        damaged[flip % (len(damaged) - 21) + 21] ^= 1
        data = write_batch([Record(0, *record) for record in good]) + bytes(damaged)
        with pytest.raises(AppendRefused) as refused:
            self.world.log.append(data, leader_epoch=0, now_ms=NOW_MS)
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE

    @rule(data=st.data())
    def delete_before(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.finish))
        self.start = max(self.start, offset)
        assert self.world.log.delete_before(offset) == self.start

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.finish))
        self.world.log.truncate(offset)
        cut = [batch for batch in self.batches if batch.last >= offset]
        self.batches = [batch for batch in self.batches if batch.last < offset]
        self.finish = min([offset, *(batch.base for batch in cut)])
        self.start, self.flushed = min(self.start, self.finish), min(self.flushed, self.finish)

    @rule(retention_bytes=st.none() | st.integers(0, 3000), age_ms=st.none() | st.integers(0, 70))
    def retain(self, retention_bytes: int | None, age_ms: int | None) -> None:
        log = self.world.log
        before, size = log.log_start_offset, log.size_bytes
        log.config = replace(CONFIG, retention_bytes=retention_bytes, retention_ms=age_ms)
        freed = log.retain(60)
        log.config = CONFIG
        assert size - log.size_bytes == freed
        if retention_bytes is None and age_ms is None:
            assert log.log_start_offset == before
        if age_ms is None and retention_bytes is not None and log.log_start_offset > before:
            assert log.size_bytes >= min(retention_bytes, size)
        self.start = log.log_start_offset
        assert before <= self.start <= self.finish

    @rule()
    def compact(self) -> None:
        log, size = self.world.log, self.world.log.size_bytes
        log.config = replace(CONFIG, compact=True, delete_retention_ms=1000)
        assert log.compact(NOW_MS, force=True) == size - log.size_bytes
        log.config = CONFIG
        held = {record.offset: record for record in self._held(self.start)}
        last = {record.key: record for batch in self.batches for record in batch.records}
        for batch in self.batches:
            for record in batch.records:
                if record.offset >= self.start:
                    assert record.offset in held or last[record.key].offset > record.offset
            batch.records = [record for record in batch.records if record.offset < self.start or record.offset in held]
        self.batches = [batch for batch in self.batches if batch.records]

    @rule()
    def flush(self) -> None:
        self.world.log.flush()
        assert self.world.log.unflushed_messages == 0
        self.flushed = self.finish

    @rule()
    def reopen(self) -> None:
        self.world.reopen()
        self.flushed = self.finish

    @rule(tear=st.integers(0, 5000))
    def crash(self, tear: int) -> None:
        self.world.crash(tear)
        end = self.world.log.log_end_offset
        assert self.flushed <= end <= self.finish
        assert end in {self.finish, self.flushed, self.start, *(b.base for b in self.batches), *self._ends()}
        self.batches = [batch for batch in self.batches if batch.last < end]
        self.start, self.finish, self.flushed = min(self.start, end), end, self.world.log.recovery_point

    # ---- what is asked of it

    @rule(data=st.data(), bytes_max=st.integers(0, 1500))
    def read(self, data: st.DataObject, bytes_max: int) -> None:
        offset = data.draw(st.integers(self.start, self.finish))
        until = data.draw(st.none() | st.sampled_from([self.start, self.finish, *(b.base for b in self.batches)]))
        found = self.world.log.read(offset, bytes_max, until=until)
        limit = self.finish if until is None else until
        expected = [batch for batch in self.batches if batch.last >= offset and batch.base < limit]
        if not expected or offset >= limit:
            assert found == b"" or not any(batch.records for batch in expected)
            return
        whole = list(headers(found, cut=True))
        assert whole, "the first batch comes whole (KIP-74)"
        assert whole[-1][1].last_offset < limit
        assert len(found) <= max(bytes_max, whole[0][1].size_bytes, 61)
        records = [record for record in read_all(found) if record.offset >= offset]
        requested = [record for batch in expected for record in batch.records if record.offset >= offset]
        assert records == requested[: len(records)]

    @rule(offset=st.integers(-3, 3))
    def read_outside(self, offset: int) -> None:
        outside = self.start + offset if offset < 0 else self.finish + 1 + offset
        with pytest.raises(OffsetOutOfRange):
            self.world.log.read(outside, 100)
        with pytest.raises(OffsetOutOfRange):
            self.world.log.delete_before(-1 if offset < 0 else outside)

    @rule(timestamp=st.integers(0, 70))
    def search_by_time(self, timestamp: int) -> None:
        found = self.world.log.offset_at(timestamp)
        records = (record for batch in self.batches for record in batch.records)
        expected = next((r for r in records if r.offset >= self.start and r.timestamp >= timestamp), None)
        assert (found and (found.offset, found.timestamp)) == (expected and (expected.offset, expected.timestamp))

    # ---- what always holds

    @invariant()
    @precondition(lambda self: hasattr(self, "world"))
    def holds_what_the_model_holds(self) -> None:
        log = self.world.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.finish)
        assert self._held(self.start) == [
            record for batch in self.batches for record in batch.records if record.offset >= self.start
        ]

    def _held(self, start: int) -> list[Record]:
        """Every record from `start` on, read as a consumer does; each batch checked, each after the one before."""
        records: list[Record] = []
        position, bases = start, [-1]
        while position < self.world.log.log_end_offset:
            data = self.world.log.read(position, 700)
            if not data:
                break
            for at, header in headers(data, cut=True):
                check_batch(data, at, header, compacted=True)
                assert header.leader_epoch == 0
                bases.append(header.base_offset)
                records += [record for record in read_records(data, at) if record.offset >= start]
                position = header.next_offset
        assert all(before < after for before, after in pairwise(bases))
        return records

    def _extend(self, records: list[Record]) -> None:
        placed = [Record(self.finish + i, r.timestamp, r.key, r.value) for i, r in enumerate(records)]
        self.batches.append(Kept(self.finish, self.finish + len(records) - 1, placed))
        self.finish += len(records)

    def _ends(self) -> Iterator[int]:
        return (batch.last + 1 for batch in self.batches)


def _machine(name: str, examples: int) -> Any:
    machine: Any = type(f"{name.title()}Machine", (LogMachine,), {"world_name": name})
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    return case


TestMemory = _machine("memory", 60)
TestDisk = _machine("disk", 40)
