"""XL6: pending offsets against a model that keeps the records of the log and decides at each marker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.group.events import OffsetRecord, OffsetValue, TopicsDeleted
from rota.coordinator.group.machine import Group, GroupConfig

KEYS = (("t", 0), ("t", 1))
PRODUCERS = (5, 6)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("pending"), st.sampled_from(PRODUCERS), st.sampled_from(KEYS)),
        st.tuples(st.just("written"), st.just(-1), st.sampled_from(KEYS)),
        st.tuples(st.just("removed"), st.just(-1), st.sampled_from(KEYS)),
        st.tuples(st.sampled_from(("commit", "abort")), st.sampled_from(PRODUCERS), st.just(KEYS[0])),
    ),
    max_size=20,
)


@given(steps)
def test_the_last_record_that_counts_wins(script: list[tuple[str, int, tuple[str, int]]]) -> None:
    group = Group("g", GroupConfig())
    counting: dict[tuple[str, int], tuple[int, int | None]] = {}  # place of the record in the log, and its offset
    pending: dict[int, dict[tuple[str, int], int]] = {}
    for place, (what, producer_id, (topic, partition)) in enumerate(script, 1):
        key = topic, partition
        if what in ("commit", "abort"):
            group.end_transaction(producer_id, is_commit=what == "commit")
            for each, written in pending.pop(producer_id, {}).items():
                if what == "commit" and written > counting.get(each, (0, None))[0]:
                    counting[each] = written, written
        elif what == "pending":
            group.replay_in_transaction(producer_id, [OffsetRecord("g", topic, partition, value(place))])
            pending.setdefault(producer_id, {})[key] = place
        elif what == "written":
            group.replay_offsets([OffsetRecord("g", topic, partition, value(place))])
            counting[key] = place, place
        else:
            group.replay(OffsetRecord("g", topic, partition, None))
            counting[key] = place, None
            for offsets in pending.values():
                offsets.pop(key, None)
        expected = {each: offset for each, (_, offset) in counting.items() if offset is not None}
        assert {each: found.offset for each, found in group.offsets.items()} == expected
        unstable = {each for offsets in pending.values() for each in offsets}
        assert {each for each in KEYS if group.is_unstable(*each)} == unstable
        assert group.is_vacant == (not expected and not pending and not group.had_offsets)


class HashedName(str):
    """A topic name that counts how often it is looked up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        HashedName.lookups += 1
        return super().__hash__()


def test_xl12_one_look_up_finds_a_pending_offset_among_those_of_many_transactions() -> None:
    group = Group("g", GroupConfig())
    for producer_id in range(100):
        group.replay_in_transaction(producer_id, [OffsetRecord("g", "t", producer_id, value(1))])
    HashedName.lookups = 0
    assert not group.is_unstable(HashedName("t"), 100)
    assert HashedName.lookups == 1


def value(offset: int, topic_id: bytes | None = None) -> OffsetValue:
    return OffsetValue(offset, -1, "", 0, None, topic_id)


OLD, NEW = b"o" * 16, b"n" * 16


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("is_new_pending", [True, False])
def test_a_deleted_topic_takes_no_offset_of_the_new_topic_of_its_name_along(
    is_new_pending: bool, is_commit: bool
) -> None:
    """XL6. One of the two offsets is committed, the other is that of a transaction."""
    group = Group("g", GroupConfig())

    def commit_plainly(topic_id: bytes) -> None:
        group.replay_offsets([OffsetRecord("g", "t", 0, value(1, topic_id))])

    def commit_in_transaction(topic_id: bytes) -> None:
        group.replay_in_transaction(5, [OffsetRecord("g", "t", 0, value(2, topic_id))])

    first, second = (
        (commit_plainly, commit_in_transaction) if is_new_pending else (commit_in_transaction, commit_plainly)
    )
    first(OLD)
    second(NEW)
    group.step(TopicsDeleted({"t": frozenset({OLD})}, 0), 0, 0)
    group.end_transaction(5, is_commit=is_commit)
    found = group.offsets.get(("t", 0))
    if not is_new_pending:
        assert found == value(1, NEW)
    elif is_commit:
        assert found == value(2, NEW)


def test_a_deleted_topic_takes_its_pending_offset_along() -> None:
    group = Group("g", GroupConfig())
    group.replay_in_transaction(5, [OffsetRecord("g", "t", 0, value(2, OLD))])
    group.step(TopicsDeleted({"t": frozenset({OLD})}, 0), 0, 0)
    group.end_transaction(5, is_commit=True)
    assert not group.offsets
