from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.metadata.client_quotas import Entity, entity_of
from rota.coordinator.replica import entity_buckets
from rota.coordinator.replica.client_rates import ClientRates

RATE = 1_000
WINDOWS = 11
BURST = RATE * (WINDOWS - 1)


class World:
    def __init__(self, limits: dict[Entity, float] | None = None) -> None:
        self.now_ms = 5_000_000
        self.rates = ClientRates(lambda: self.now_ms, windows=WINDOWS, window_ms=1_000)
        self.rates.limits.update({entity_of({"user": "u"}): RATE} if limits is None else limits)


# the most specific first: Kafka's table (KIP-55, ClientQuotaManager)
PRECEDENCE: list[dict[str, str | None]] = [
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": "u"},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
]


@given(st.sets(st.sampled_from(range(len(PRECEDENCE)))))
def test_the_most_specific_quota_is_in_force(present: set[int]) -> None:
    limits: dict[Entity, float] = {entity_of(PRECEDENCE[level]): 100.0 + level for level in present}
    limits |= {entity_of({"user": "v"}): 1.0, entity_of({"client-id": "d", "user": "u"}): 1.0}
    burst = World(limits).rates.burst_bytes("u", "c")
    assert burst == (10 * (100 + min(present)) if present else None)


@pytest.mark.parametrize(
    ("names", "shares_with"),
    [
        ({"user": "u"}, {("u", "d")}),
        ({"user": None}, {("u", "d")}),
        ({"client-id": "c"}, {("v", "c")}),
        ({"client-id": None}, {("v", "c")}),
        ({"user": "u", "client-id": "c"}, set()),
        ({"user": None, "client-id": None}, set()),
    ],
)
def test_clients_of_one_entity_share_a_rate(names: dict[str, str | None], shares_with: set[tuple[str, str]]) -> None:
    for other in (("u", "d"), ("v", "c"), ("v", "d")):
        world = World({entity_of(names): RATE})
        assert world.rates.record("u", "c", BURST + RATE) == 1_000
        assert (world.rates.record(*other, 1) > 0) is (other in shares_with)


def test_a_client_without_a_quota_is_not_measured() -> None:
    world = World()
    assert world.rates.record("other", "c", 1 << 40) == 0
    assert world.rates.admit("other", "c", 1 << 40) == 0
    assert len(world.rates) == 0


def test_a_changed_quota_counts_at_once() -> None:
    world = World()
    assert world.rates.record("u", "c", BURST + RATE) == 1_000
    world.rates.limits.update({entity_of({"user": "u"}): 2 * RATE})
    assert world.rates.record("u", "c", 0) == 0


def test_a_response_that_is_throttled_is_not_counted() -> None:
    world = World()
    assert world.rates.admit("u", "c", BURST) == 0
    assert world.rates.admit("u", "c", RATE) == 1_000
    assert world.rates.admit("u", "c", RATE) == 1_000
    assert world.rates.admit("u", "c", 0) == 0


def test_a_throttled_client_gets_its_response_in_the_time_of_all_windows() -> None:
    world = World()
    began_ms = world.now_ms
    assert world.rates.admit("u", "c", BURST) == 0
    while wait_ms := world.rates.admit("u", "c", RATE):
        world.now_ms += wait_ms
    assert world.now_ms - began_ms == WINDOWS * 1_000


def test_a_response_larger_than_every_burst_is_sent_when_nothing_was_sent_for_all_windows() -> None:
    world = World()
    assert world.rates.admit("u", "c", 100 * BURST) == 0
    assert world.rates.admit("u", "c", 1) > 0
    world.now_ms += WINDOWS * 1_000
    assert world.rates.admit("u", "c", 100 * BURST) == 0


REQUESTS = st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 8_000)), max_size=60)


@given(REQUESTS, st.booleans())
def test_a_client_that_waits_gets_no_more_than_its_quota_and_a_burst(
    requests: list[tuple[int, int]], fetches: bool
) -> None:
    world, passed = World(), []
    for idle_ms, size in requests:
        world.now_ms += idle_ms
        if fetches:
            wait_ms = world.rates.admit("u", "c", size)
            passed.append((world.now_ms, 0 if wait_ms else size))
        else:
            wait_ms = world.rates.record("u", "c", size)
            passed.append((world.now_ms, size))
        world.now_ms += wait_ms
    largest = max((size for _, size in passed), default=0)
    for first, (began_ms, _) in enumerate(passed):
        total = 0
        for at_ms, size in passed[first:]:
            if at_ms - began_ms >= (WINDOWS - 1) * 1_000:
                break
            total += size
        assert total <= 2 * BURST + RATE + largest


def test_the_number_of_rates_is_bounded_and_idle_ones_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entity_buckets, "BUCKETS_MAX", 3)
    world = World({entity_of({"client-id": None}): RATE})
    for client in "abcdef":
        world.rates.record("u", client, 1)
    assert len(world.rates) == 3
    world.now_ms += WINDOWS * 1_000
    world.rates.record("u", "z", 1)
    assert len(world.rates) == 1
