"""A lag is a number only where both offsets are known. tests/client/test_admin_offsets.py runs the whole call."""

from __future__ import annotations

import pytest

from rota.client.admin.lag import PartitionLag, compute_lag


@pytest.mark.parametrize(
    ("committed", "end", "lag"), [(0, 0, 0), (3, 10, 7), (10, 3, -7), (None, 10, None), (3, None, None)]
)
def test_an_unknown_lag_is_none(committed: int | None, end: int | None, lag: int | None) -> None:
    assert compute_lag(committed, end) == lag


def test_the_repr_of_a_lag_has_all_fields() -> None:
    assert repr(PartitionLag(3, 0, 10, 7, "me")) == "PartitionLag(committed=3, start=0, end=10, lag=7, member='me')"
