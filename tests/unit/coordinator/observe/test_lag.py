"""The lag of a group is the sum of what is known; what is not known is -1."""

from __future__ import annotations

from rota.coordinator.observe.lag import UNKNOWN, PartitionLag, total


def partition(index: int, records: int, age_ms: int) -> PartitionLag:
    return PartitionLag(
        topic="t", partition=index, committed=1, end=9, records=records, age_ms=age_ms, trend=0.0, has_trend=False
    )


def test_the_lag_of_a_group_counts_the_known_partitions() -> None:
    lag = total("g", 5, "Stable", (partition(0, 3, 100), partition(1, UNKNOWN, UNKNOWN), partition(2, 4, 70)))
    assert (lag.records, lag.age_ms) == (7, 100)


def test_without_a_known_partition_the_lag_is_unknown() -> None:
    assert (total("g", 5, "Empty", ()).records, total("g", 5, "Empty", ()).age_ms) == (UNKNOWN, UNKNOWN)
    assert total("g", 5, "Empty", (partition(0, UNKNOWN, UNKNOWN),)).records == UNKNOWN
