"""CQ10: the token bucket of KIP-599. The numbers are Kafka's for a quota of 2 per second in 11 windows of 1 s."""

from __future__ import annotations

from rota.coordinator.metadata.client_quotas import entity_of
from rota.coordinator.replica.mutation_rates import MutationRates

BURST = 22


class World:
    def __init__(self) -> None:
        self.now_ms = 0
        self.rates = MutationRates(lambda: self.now_ms, burst_ms=11_000)
        self.rates.limits[entity_of({"user": "u"})] = 2.0

    def take(self, partitions: int, *, is_strict: bool = True, user: str = "u") -> int:
        return self.rates.take(user, "c", partitions, is_strict=is_strict)


def test_a_client_with_tokens_may_take_more_than_it_has_once() -> None:
    world = World()
    assert [world.take(BURST), world.take(6), world.take(1)] == [0, 0, 3_000]
    world.now_ms = 2_999
    assert world.take(1) == 1
    world.now_ms = 3_000
    assert world.take(1) == 0
    assert world.take(1, user="other") == 0


def test_what_is_refused_does_not_count() -> None:
    world = World()
    world.take(BURST + 2)
    assert [world.take(1_000) for _ in range(3)] == [1_000] * 3


def test_what_cannot_be_refused_counts() -> None:
    world = World()
    assert [world.take(BURST, is_strict=False), world.take(2, is_strict=False), world.take(2, is_strict=False)] == [
        0,
        1_000,
        2_000,
    ]


def test_a_bucket_fills_up_to_the_burst() -> None:
    world = World()
    world.take(BURST)
    world.now_ms = 1_000_000
    assert [world.take(BURST), world.take(2), world.take(1)] == [0, 0, 1_000]


def test_a_client_that_waits_longer_than_all_windows_is_not_forgotten() -> None:
    world = World()
    world.take(BURST + 200)
    world.now_ms = 50_000
    assert world.take(1) == 50_000
