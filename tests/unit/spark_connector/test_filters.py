"""Filters narrow ranges, and never by a record that they let through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from rota.spark_connector.filters import push_filters
from rota.spark_connector.offsets import OffsetRange

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WHOLE = OffsetRange("orders", 1, 100, 200)


def cut(*filters: Filter) -> tuple[int, int]:
    found = push_filters(filters)[0].narrow(WHOLE)
    return found.start, found.end


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        (EqualTo(("offset",), 150), (150, 151)),
        (EqualNullSafe(("offset",), 150), (150, 151)),
        (GreaterThan(("offset",), 150), (151, 200)),
        (GreaterThanOrEqual(("offset",), 150), (150, 200)),
        (LessThan(("offset",), 150), (100, 150)),
        (LessThanOrEqual(("offset",), 150), (100, 151)),
        (LessThan(("offset",), 50), (100, 100)),
        (GreaterThan(("offset",), 500), (200, 200)),
        (EqualTo(("partition",), 1), (100, 200)),
        (EqualTo(("partition",), 2), (200, 200)),
        (In(("topic",), ("orders", "other")), (100, 200)),
        (Not(In(("topic",), ("orders", "other"))), (200, 200)),
        (StringStartsWith(("topic",), "ord"), (100, 200)),
        (StringEndsWith(("topic",), "x"), (200, 200)),
        (StringContains(("topic",), "rde"), (100, 200)),
        (IsNotNull(("offset",)), (100, 200)),
    ],
    ids=repr,
)
def test_a_filter_that_the_ranges_keep_is_taken_from_spark(item: Filter, kept: tuple[int, int]) -> None:
    assert cut(item) == kept
    assert push_filters([item])[1] == []


@pytest.mark.parametrize(
    "item",
    [
        EqualTo(("value",), b"x"),
        IsNotNull(("key",)),
        IsNull(("offset",)),
        Not(EqualTo(("offset",), 5)),
        EqualTo(("topic",), None),
        In(("partition",), (1, None)),
        EqualTo(("headers", "key"), "x"),
        In(("offset",), ()),
    ],
    ids=repr,
)
def test_unsupported_filters_are_left_to_spark(item: Filter) -> None:
    assert push_filters([item])[1] == [item]
    assert cut(item) == (100, 200)


def test_offsets_in_a_list_narrow_but_stay_with_spark() -> None:
    item = In(("offset",), (120, 110))
    assert cut(item) == (110, 121)
    assert push_filters([item])[1] == [item]


def test_a_time_narrows_the_start_and_stays_with_spark() -> None:
    filters = [GreaterThanOrEqual(("timestamp",), NOON), LessThan(("timestamp",), NOON + timedelta(hours=1))]
    found, rest = push_filters(filters)
    assert found.min_time_ms == int(NOON.timestamp() * 1000)
    assert rest == filters


TIME_FILTERS = st.sampled_from([EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual])
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES_US = st.one_of(st.integers(-5_000, 5_000), st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))


@given(kind=TIME_FILTERS, time_us=TIMES_US, data=st.data())
def test_a_time_never_leaves_out_a_record_that_passes(kind: type[Filter], time_us: int, data: st.DataObject) -> None:
    """Also of records without a timestamp (-1) or with one before 1970; brokers look up times from 0 on alone."""
    time_ms = time_us // 1000
    record_ms = data.draw(st.one_of(st.just(-1), st.integers(time_ms - 2, time_ms + 2)))
    looked_up = push_filters([kind(("timestamp",), EPOCH + timedelta(microseconds=time_us))])[0].min_time_ms
    assert looked_up is None or looked_up > 0, "ListOffsets gives times below 0 another meaning"
    if passes(kind(("timestamp",), time_us), {"timestamp": record_ms * 1000}):
        assert looked_up is None or record_ms >= looked_up


@pytest.mark.parametrize("year", [1, 1900, 1969])
def test_a_time_before_the_epoch_narrows_nothing(year: int) -> None:
    for zone in (UTC, timezone(timedelta(hours=14)), None):
        assert (
            push_filters([GreaterThanOrEqual(("timestamp",), datetime(year, 1, 1, tzinfo=zone))])[0].min_time_ms is None
        )


def test_a_time_at_the_end_of_the_calendar_is_looked_up() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=timezone(timedelta(hours=-12)))
    assert push_filters([GreaterThanOrEqual(("timestamp",), last)])[0].min_time_ms == 253_402_343_999_999


NUMBERS = st.integers(0, 6)
KINDS = st.sampled_from([EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual])
ON_NUMBERS = st.builds(
    lambda kind, column, value: kind((column,), value), KINDS, st.sampled_from(["partition", "offset"]), NUMBERS
)
LISTS = st.builds(
    lambda column, values: In((column,), tuple(values)),
    st.sampled_from(["partition", "offset"]),
    st.lists(NUMBERS, min_size=1),
)
FILTERS = st.lists(st.one_of(ON_NUMBERS, LISTS, ON_NUMBERS.map(Not), LISTS.map(Not)), max_size=5)


def passes(item: Filter, row: dict[str, Any]) -> bool:
    if isinstance(item, Not):
        return not passes(item.child, row)
    value = row[item.attribute[0]]
    match item:
        case In():
            return value in item.value
        case GreaterThan():
            return bool(value > item.value)
        case GreaterThanOrEqual():
            return bool(value >= item.value)
        case LessThan():
            return bool(value < item.value)
        case LessThanOrEqual():
            return bool(value <= item.value)
    return bool(value == item.value)


@given(FILTERS)
def test_narrowed_ranges_with_the_remaining_filters_equal_the_filters(filters: list[Filter]) -> None:
    found, rest = push_filters(filters)
    for partition in range(7):
        kept = found.narrow(OffsetRange("t", partition, 0, 7))
        for offset in range(7):
            row = {"partition": partition, "offset": offset}
            read = kept.start <= offset < kept.end
            assert (read and all(passes(item, row) for item in rest)) == all(passes(item, row) for item in filters)
