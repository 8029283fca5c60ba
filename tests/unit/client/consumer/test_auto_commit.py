"""When an automatic commit is due."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from rota.client.consumer.auto_commit import NEVER, AutoCommit


def auto(*, on: bool = True) -> AutoCommit:
    return AutoCommit(on=on, interval_ms=5_000, backoff_ms=100, now_ms=1_000)


def test_the_first_is_due_after_an_interval() -> None:
    assert not auto().is_due(5_999)
    assert auto().is_due(6_000)
    assert auto().next_ms == 6_000


def test_switched_off_none_is_ever_due() -> None:
    off = auto(on=False)
    assert not off.is_due(1e12)
    assert off.next_ms == NEVER


def test_one_is_under_way_at_most() -> None:
    item = auto()
    item.begin(6_000)
    assert not item.is_due(60_000)
    assert item.next_ms == NEVER
    item.complete(60_000, retry=False)
    assert item.is_due(60_000)


def test_a_retriable_failure_is_retried_after_the_backoff() -> None:
    item = auto()
    item.begin(6_000)
    item.complete(6_500, retry=True)
    assert not item.is_due(6_599)
    assert item.is_due(6_600)


def test_a_fatal_failure_waits_for_the_next_interval() -> None:
    item = auto()
    item.begin(6_000)
    item.complete(6_500, retry=False)
    assert item.next_ms == 11_000


@given(
    began=st.integers(6_000, 20_000), took=st.integers(0, 20_000), retry=st.booleans(), requests=st.integers(0, 50_000)
)
def test_the_next_is_an_interval_after_the_last_or_a_backoff_after_its_failure(
    began: int, took: int, retry: bool, requests: int
) -> None:
    item = auto()
    item.begin(began)
    item.complete(began + took, retry=retry)
    expected = min(began + 5_000, began + took + 100) if retry else began + 5_000
    assert item.is_due(requests) == (requests >= expected) == (requests >= item.next_ms)
