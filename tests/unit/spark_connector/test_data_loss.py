"""What is lost, and where it goes on: laws of the arithmetic."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.client.types import TopicPartition
from rota.spark_connector.data_loss import detect_losses, next_end, readable_ranges, restart_offsets
from rota.spark_connector.offsets import OffsetRange

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
U0 = TopicPartition("u", 0)


def test_unchanged_or_grown_logs_are_no_loss() -> None:
    assert detect_losses({T0: 5, T1: 0}, {T0: 5, T1: 9, T2: 3}, set()) == {}


def test_each_kind_of_loss_has_its_message() -> None:
    answer = detect_losses({T0: 5, T1: 6, U0: 7}, {T0: 4, U0: 9}, {"u"})
    assert answer == {
        T0: "t-0 was read up to offset 5, and its log now ends at 4",
        T1: "t-1 does not exist any more; the query has read it up to offset 6",
        U0: "u-0 was read up to offset 7, and its topic was deleted and created again",
    }


def test_a_log_that_starts_after_the_read_offset_is_not_read_again() -> None:
    assert restart_offsets({T0: 5, T1: 5, T2: 5}, (T0, T1, T2), {T0: 0, T1: 5}) == {T0: 0}


@given(
    begin=st.integers(1, 60),
    first=st.integers(0, 59),
    length=st.integers(0, 60),
    limit=st.one_of(st.none(), st.integers(1, 20)),
)
def test_a_recreated_log_is_read_completely_once(begin: int, first: int, length: int, limit: int | None) -> None:
    at, latest, seen = {T0: begin}, {T0: first + length}, list[int]()
    again = restart_offsets(at, (T0,), {T0: first})
    if not again:
        return
    end = next_end(at, again, latest, limit)
    assert end[T0] < begin, "nothing else goes back"
    seen += range(first, end[T0])
    while end != at:
        at, end = end, next_end(end, {}, latest, limit)
        seen += range(at[T0], end[T0])
    assert seen == list(range(first, first + length))


def test_deleted_partitions_have_no_end_offset() -> None:
    assert next_end({T0: 5, T1: 5}, {}, {T1: 9}, None) == {T1: 9}
    assert next_end({T0: 5, T1: 5}, {}, {T1: 9}, 2) == {T1: 7}


def test_sp19_a_partition_that_goes_between_two_requests_is_lost() -> None:
    lost = {T0: "t-0 does not exist any more; its offsets 2 to 8 are lost"}
    for earliest, latest in (({T0: 0}, {}), ({}, {T0: 9}), ({}, {})):
        assert readable_ranges([OffsetRange("t", 0, 2, 9)], earliest, latest) == ([], lost)


def test_readable_ranges_are_separated_from_lost_ones() -> None:
    wanted = [
        OffsetRange("t", 0, 2, 9),
        OffsetRange("t", 1, 0, 5),
        OffsetRange("t", 2, 0, 4),
        OffsetRange("u", 0, 3, 6),
    ]
    kept, answer = readable_ranges(wanted, {T0: 6, T1: 0, U0: 7}, {T0: 8, T1: 5, U0: 9})
    assert kept == [OffsetRange("t", 0, 6, 8), OffsetRange("t", 1, 0, 5)]
    assert answer == {
        T0: "t-0 lacks offsets 2 to 5, 8 to 8: its log begins at 6 and ends at 8",
        T2: "t-2 does not exist any more; its offsets 0 to 3 are lost",
        U0: "u-0 lacks offsets 3 to 5: its log begins at 7 and ends at 9",
    }
