"""A lag is a number only where both offsets are known. tests/client/test_admin_offsets.py runs the whole call."""

from __future__ import annotations

import pytest

from rota.client.admin.lag import PartitionLag, compute_age, compute_lag, first_unread


@pytest.mark.parametrize(
    ("committed", "end", "lag"), [(0, 0, 0), (3, 10, 7), (10, 3, -7), (None, 10, None), (3, None, None)]
)
def test_an_unknown_lag_is_none(committed: int | None, end: int | None, lag: int | None) -> None:
    assert compute_lag(committed, end) == lag


@pytest.mark.parametrize(
    ("lag", "time_ms", "age_ms"),
    [(0, None, 0), (3, 600, 400), (3, None, None), (None, None, None), (-7, None, None), (3, 1_500, 0)],
)
def test_an_unknown_age_is_none_and_0_means_that_nothing_is_unread_or_it_is_new(
    lag: int | None, time_ms: int | None, age_ms: int | None
) -> None:
    assert compute_age(lag, time_ms, now_ms=1_000) == age_ms


def test_what_retention_deleted_is_not_unread() -> None:
    assert first_unread(PartitionLag(4, 0, 10, 6)) == 4
    assert first_unread(PartitionLag(4, 7, 10, 6)) == 7


def test_the_repr_of_a_lag_has_all_fields() -> None:
    text = "PartitionLag(committed=3, start=0, end=10, lag=7, member='me', age_ms=None)"
    assert repr(PartitionLag(3, 0, 10, 7, "me")) == text
