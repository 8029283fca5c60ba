"""The counters of requests and rebalances."""

from __future__ import annotations

import pytest

from rota.coordinator.observe.counters import (
    LATENCY_BUCKETS,
    LATENCY_SHIFT,
    ApiCounters,
    RebalanceCounters,
    bucket_ends_seconds,
)


@pytest.mark.parametrize("bucket", range(LATENCY_BUCKETS - 1))
def test_a_latency_is_counted_in_the_bucket_that_ends_above_it(bucket: int) -> None:
    end_ns = 1 << (LATENCY_SHIFT + bucket)
    counters = ApiCounters()
    counters.add(2, end_ns - 1)
    assert counters.buckets[bucket] == 2
    counters.add(1, end_ns)
    assert counters.buckets[bucket + 1] == 1
    assert bucket_ends_seconds()[bucket] == end_ns / 1e9
    assert (counters.requests, counters.total_ns) == (3, 3 * end_ns - 2)


def test_the_last_bucket_takes_every_longer_latency() -> None:
    counters = ApiCounters()
    counters.add(1, 1 << 62)
    assert counters.buckets[-1] == 1


def test_errors_are_counted_by_code() -> None:
    counters = ApiCounters()
    for code in (25, 22, 25):
        counters.add_error(code)
    assert counters.errors == {25: 2, 22: 1}


def test_a_rebalance_that_another_one_interrupts_is_counted_and_ended() -> None:
    counters = RebalanceCounters()
    counters.began("g", "member-joined")
    counters.began("g", "member-left")
    counters.ended_now("g")
    counters.ended_now("g")
    assert counters.began_count == {"member-joined": 1, "member-left": 1}
    assert {cause: ended.requests for cause, ended in counters.ended.items()} == {"member-joined": 1, "member-left": 1}
