"""C1: what may be committed never passes what the user is done with, and misses none of it."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.soak import examples

from rota.client.consumer.auto_commit import AutoCommit
from rota.client.consumer.delivered_records import DeliveredRecords, as_partitions
from rota.client.consumer.positions import Positions
from rota.client.types import ConsumerRecord, OffsetAndMetadata, TopicPartition

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
FIRST, SECOND, _ = PARTITIONS
partitions = st.sampled_from(PARTITIONS)


def record(partition: TopicPartition, offset: int) -> ConsumerRecord:
    return ConsumerRecord(*partition, offset, -1, 0, None, b"", (), offset // 5)


class Consumers(RuleBasedStateMachine):
    """A consumer without a network: endless logs with gaps, a group that takes partitions away, a user who polls,
    seeks, pauses and fails. `finished` says in the simplest way what the user is done with: the next offset to read."""

    @initialize(gap=st.integers(1, 3))
    def begin(self, gap: int) -> None:
        self.gap = gap  # records lie at 0, gap, 2 * gap, …
        self.positions = Positions()
        self.delivered = DeliveredRecords(self.positions)
        self.auto = AutoCommit(on=True, interval_ms=10, backoff_ms=1, now_ms=0)
        self.now_ms = 0
        self.finished: dict[TopicPartition, int] = {}  # the user is done with everything before
        self.in_hand: dict[TopicPartition, tuple[int, int]] = {}  # of the last call: its first, and behind its last
        self.commits: dict[TopicPartition, int] = {}  # at the broker
        self.assign(PARTITIONS)

    def up(self, offset: int) -> int:
        """Where the next record lies."""
        return -(-offset // self.gap) * self.gap

    def assign(self, owned: list[TopicPartition]) -> None:
        self.positions.assign(owned)
        for item in owned:
            if item not in self.finished:
                self.finished[item] = self.commits.get(item, 0)
                self.positions.seek(item, self.finished[item])

    def enter(self) -> None:
        """A poll-like call begins."""
        self.delivered.begin()
        for item, (_, behind) in self.in_hand.items():
            self.finished[item] = behind
        self.in_hand = {}
        self.now_ms += 3
        if self.auto.is_due(self.now_ms):
            self.auto.begin(self.now_ms)
            self.commit(self.delivered.done())
            self.auto.complete(self.now_ms, retry=False)

    def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        for item, at in offsets.items():
            assert at.offset <= self.up(self.finished[item]), "C1"
            self.commits[item] = at.offset

    def take(self, count: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """What a fetcher does: records from the positions on, the positions behind them."""
        batch: dict[TopicPartition, list[ConsumerRecord]] = {}
        for item in sorted(self.positions.assigned - self.positions.paused)[:count]:
            position = self.positions.of(item)
            assert position.offset is not None
            start = self.up(position.offset)
            batch[item] = [record(item, start + self.gap * at) for at in range(max(1, count // 2))]
            position.offset = batch[item][-1].offset + 1
        return batch

    def given(self, batch: dict[TopicPartition, list[ConsumerRecord]]) -> None:
        for item, records in batch.items():
            offsets = [each.offset for each in records]
            assert offsets == list(range(offsets[0], offsets[-1] + 1, self.gap)), "in order, without a hole"
            assert offsets[0] == self.up(self.finished[item]), "nothing twice, nothing left out"
            self.in_hand[item] = (offsets[0], offsets[-1] + 1)

    @rule(count=st.integers(1, 6))
    def getmany(self, count: int) -> None:
        self.enter()
        self.given(self.delivered.many(count) if self.delivered.left else self.delivered.all_of(self.take(count)))

    @rule(count=st.integers(1, 6))
    def next_record(self, count: int) -> None:
        self.enter()
        if not self.delivered.left:
            self.delivered.put(self.take(count))
        if self.delivered.left:
            item = self.delivered.one()
            self.given({TopicPartition(item.topic, item.partition): [item]})

    @rule()
    def a_poll_that_gives_nothing(self) -> None:
        self.enter()

    @rule(partition=partitions, offset=st.integers(0, 40))
    def seek(self, partition: TopicPartition, offset: int) -> None:
        if partition in self.positions.assigned:
            self.positions.seek(partition, offset)
            self.delivered.forget((partition,))
            self.finished[partition] = offset
            self.in_hand.pop(partition, None)

    @rule(partition=partitions)
    def pause(self, partition: TopicPartition) -> None:
        if partition in self.positions.assigned:
            self.positions.pause((partition,))
            self.delivered.put_back((partition,))

    @rule()
    def resume(self) -> None:
        self.positions.resume(self.positions.assigned)

    @rule(kept=st.sets(partitions))
    def rebalance(self, kept: set[TopicPartition]) -> None:
        """Within a poll: commit, give up, take over."""
        self.enter()
        self.commit(self.delivered.done())
        revoked = self.positions.assigned - kept
        self.delivered.forget(revoked)
        self.positions.drop(revoked)
        for item in revoked:
            self.finished.pop(item, None)
        self.assign(sorted(kept))

    @rule()
    def the_user_closes(self) -> None:
        done = {item: behind for item, (_, behind) in self.in_hand.items()}
        expected = {item: self.finished[item] for item in self.positions.assigned} | done
        assert self.same(self.delivered.done(), expected), "everything that was delivered"

    @rule()
    def the_user_fails(self) -> None:
        expected = {item: self.finished[item] for item in self.positions.assigned}
        assert self.same(self.delivered.before_last(), expected), "what was delivered before the last call"

    def same(self, offsets: dict[TopicPartition, OffsetAndMetadata], expected: dict[TopicPartition, int]) -> bool:
        """Offsets that differ by a gap in the log mean the same."""
        assert offsets.keys() == expected.keys()
        return all(self.up(at.offset) == self.up(expected[item]) for item, at in offsets.items())

    @precondition(lambda self: hasattr(self, "delivered"))
    @invariant()
    def the_user_stands_where_the_next_record_is(self) -> None:
        for item in self.positions.assigned:
            waiting = self.delivered.next_offset(item)
            stands = self.positions.of(item).offset if waiting is None else waiting
            behind = self.in_hand[item][1] if item in self.in_hand else self.finished[item]
            assert stands is not None
            assert self.up(stands) == self.up(behind)
            assert not (item in self.positions.paused and waiting is not None)


TestConsumers = Consumers.TestCase
TestConsumers.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


@pytest.fixture
def delivered() -> DeliveredRecords:
    positions = Positions()
    positions.assign([FIRST, SECOND])
    positions.seek(FIRST, 3)
    positions.seek(SECOND, 1)
    return DeliveredRecords(positions)


def test_records_are_returned_by_partition_in_order(delivered: DeliveredRecords) -> None:
    delivered.put({FIRST: [record(FIRST, 1), record(FIRST, 2)], SECOND: [record(SECOND, 0)]})
    assert [(item.partition, item.offset) for item in (delivered.one(), delivered.one(), delivered.one())] == [
        (0, 1),
        (0, 2),
        (1, 0),
    ]


def test_records_put_later_are_returned_later(delivered: DeliveredRecords) -> None:
    delivered.put({FIRST: [record(FIRST, 1)]})
    delivered.put({FIRST: [record(FIRST, 2)]})
    assert [delivered.one().offset, delivered.one().offset] == [1, 2]


def test_a_commit_carries_the_leader_epoch_of_the_record_that_waits(delivered: DeliveredRecords) -> None:
    delivered.put({FIRST: [record(FIRST, 1), record(FIRST, 12)]})
    delivered.one()
    assert delivered.done()[FIRST] == OffsetAndMetadata(12, "", 2)


@pytest.mark.parametrize("given", [FIRST, [FIRST], (FIRST,), [("orders", 0)], iter([FIRST])])
def test_one_partition_or_several(given: object) -> None:
    assert as_partitions(given) == (FIRST,)  # type: ignore[arg-type]
