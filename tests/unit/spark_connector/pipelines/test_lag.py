"""Who is behind, window by window, also those who say nothing any more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.client.types import TopicPartition
from rota.spark_connector.pipelines.lag import (
    GroupPosition,
    Lag,
    positions_by_window,
    unread_offsets,
    with_lags,
    with_seconds,
)

FIRST, SECOND, THIRD = WINDOWS = (0, 10), (10, 20), (20, 30)


def at(
    window: tuple[int, int], committed: int | None, source: int, group: str = "g", partition: int = 0
) -> GroupPosition:
    return GroupPosition(window, group, "t", partition, committed, source)


def test_each_window_with_a_commit_has_its_row() -> None:
    answer = [at(FIRST, 5, 1), at(SECOND, 9, 2)]
    assert positions_by_window(answer, []) == answer


def test_a_group_without_commits_has_a_row_in_every_later_window() -> None:
    quiet, loud = at(FIRST, 5, 1, "quiet"), [at(SECOND, 8, 6, "loud"), at(THIRD, 9, 7, "loud")]
    found = positions_by_window([quiet, *loud], [])
    assert [item for item in found if item.group == "loud"] == loud
    assert [item for item in found if item.group == "quiet"] == [quiet._replace(window=at) for at in WINDOWS]


def test_positions_of_earlier_batches_are_carried_forward() -> None:
    before = [at(FIRST, 5, 1, "quiet"), at(SECOND, 6, 2, "quiet"), at(SECOND, 7, 3, "loud")]
    found = positions_by_window([at(THIRD, 8, 9, "loud")], before)
    assert [item for item in found if item.window == THIRD] == [at(THIRD, 8, 9, "loud"), at(THIRD, 6, 2, "quiet")]


def test_a_tombstone_has_one_row_and_is_not_carried_forward() -> None:
    deleted = [at(FIRST, 5, 1), at(SECOND, None, 2), at(SECOND, 1, 3, "other")]
    assert positions_by_window(deleted, []) == deleted
    assert positions_by_window([at(THIRD, 2, 4, "other")], deleted)[-1:] == [at(THIRD, 2, 4, "other")]
    assert at(SECOND, None, 2) not in positions_by_window([], deleted)


def test_a_late_commit_has_its_row_and_is_the_current_position() -> None:
    late = at(FIRST, 9, 8)
    assert positions_by_window([late], [at(SECOND, 6, 2), at(SECOND, 1, 1, "other")]) == [
        late,
        at(SECOND, 9, 8),
        at(SECOND, 1, 1, "other"),
    ]


def test_a_micro_batch_without_commits_keeps_the_known_positions() -> None:
    before = [at(FIRST, 5, 1), at(SECOND, 6, 2)]
    assert positions_by_window([], before) == [at(SECOND, 6, 2)]
    assert positions_by_window([], []) == []


def test_the_lag_is_the_end_offset_minus_the_committed_offset() -> None:
    rows = [at(FIRST, 5, 1), at(FIRST, 5, 1, partition=1), at(FIRST, 5, 1, partition=2)]
    ends = {(10, TopicPartition("t", 0)): 8, (10, TopicPartition("t", 2)): 4, (20, TopicPartition("t", 1)): 9}
    assert list(with_lags(rows, ends)) == [Lag(rows[0], 8, 3), Lag(rows[1], None, None), Lag(rows[2], 4, 0)]
    (deleted,) = with_lags([at(FIRST, None, 1)], ends)
    assert (deleted.end_offset, deleted.lag) == (8, None)


@given(
    st.lists(st.tuples(st.sampled_from(WINDOWS), st.none() | st.integers(0, 99), st.sampled_from("abc")), max_size=12),
    st.integers(0, 12),
)
def test_how_micro_batches_are_cut_changes_nothing(
    given: list[tuple[tuple[int, int], int | None, str]], cut: int
) -> None:
    ordered = sorted(given, key=lambda item: item[0])
    answer = [at(window, committed, source, group) for source, (window, committed, group) in enumerate(ordered)]
    whole = positions_by_window(last_of_each(answer), [])
    first = positions_by_window(last_of_each(answer[:cut]), [])
    second = positions_by_window(last_of_each(answer[cut:]), first)
    assert sorted(last_of_each([*first, *second]), key=lambda item: (item.window, item.group_partition)) == whole


def last_of_each(rows: list[GroupPosition]) -> list[GroupPosition]:
    return list({(item.window, item.group_partition): item for item in rows}.values())


def test_the_lag_in_seconds_is_the_age_of_the_first_unread_record() -> None:
    rows = [Lag(at(FIRST, 5, 1), 9, 4), Lag(at(SECOND, 9, 2), 9, 0), Lag(at(THIRD, 9, 2), 12, 3)]
    rows += [
        Lag(at(FIRST, 7, 1, partition=1), 9, 2),
        Lag(at(SECOND, None, 2), 9, None),
        Lag(at(FIRST, 4, 1), None, None),
    ]
    unread = unread_offsets(rows)
    part = TopicPartition("t", 0)
    assert [*unread] == [(part, 9), (part, 5), (TopicPartition("t", 1), 7)], "the newest windows come first"
    found = with_seconds(rows, {(part, 5): 4, (part, 9): 21}, now_ms=27)
    assert [row.lag_seconds for row in found] == [0.006, 0.0, 0.006, None, None, None]
    (future,) = with_seconds(rows[:1], {(part, 5): 99}, now_ms=27)
    assert future.lag_seconds == 0.0


def test_a_record_without_a_timestamp_has_no_age() -> None:
    """-1, of the oldest format of records, or of a producer without a clock: not an age of half a century."""
    (row,) = with_seconds(
        with_lags([at(FIRST, 5, 1)], {(10, TopicPartition("t", 0)): 9}), {(TopicPartition("t", 0), 5): -1}, 27
    )
    assert (row.lag, row.lag_seconds) == (4, None)
