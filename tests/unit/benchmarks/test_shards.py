"""The simulated spread of groups over brokers."""

from __future__ import annotations

from random import Random

import pytest
from benchmarks.shards import equal, leaders, skewed, spread

from rota.coordinator.runtime.routing import shard_of


@pytest.mark.parametrize("brokers", [1, 2, 16, 64])
def test_leaders_of_shards_differ_by_one_at_most_between_brokers(brokers: int) -> None:
    counts = [leaders(brokers, 50).count(broker) for broker in range(brokers)]
    assert sum(counts) == 50
    assert max(counts) - min(counts) <= 1


def test_one_broker_has_the_traffic_of_one() -> None:
    one = spread(1, 50, {"a": 1.0, "b": 2.0})
    assert (one.times, one.used) == (1.0, 1)


def test_the_busiest_broker_limits_the_traffic_of_all() -> None:
    assert shard_of("a", 50) % 2 != shard_of("b", 50) % 2
    assert spread(2, 50, {"a": 1.0, "b": 3.0}).times == pytest.approx(4 / 3)


def test_brokers_beyond_the_shards_have_no_group() -> None:
    assert spread(64, 50, equal(Random(1), 2_000)).used == 50


def test_skewed_groups_gain_less_from_brokers_than_equal_ones() -> None:
    assert spread(16, 50, skewed(Random(1), 2_000)).times < spread(16, 50, equal(Random(1), 2_000)).times
