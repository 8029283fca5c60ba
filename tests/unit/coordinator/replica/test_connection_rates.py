"""CQ11: how many connections an address may open."""

from __future__ import annotations

import pytest

from rota.coordinator.replica import connection_rates
from rota.coordinator.replica.connection_rates import ConnectionRates


class World:
    def __init__(self) -> None:
        self.now_ms = 0
        self.rates = ConnectionRates(lambda: self.now_ms, windows=11, window_ms=1_000, delay_ms_max=1_000)

    def opened(self, address: str, attempts: int) -> int:
        return sum(self.rates.open(address) == 0 for _ in range(attempts))


def test_a_connection_above_the_rate_is_held_and_not_counted() -> None:
    world = World()
    world.rates.set_limit("10.0.0.1", 1)
    assert world.opened("10.0.0.1", 30) == 10
    assert world.rates.open("10.0.0.1") == 1_000
    world.now_ms = 1_000
    assert world.opened("10.0.0.1", 30) == 0
    world.now_ms = 11_000
    assert world.opened("10.0.0.1", 30) == 10
    assert world.opened("10.0.0.2", 30) == 30


def test_under_the_default_each_address_has_its_own_rate() -> None:
    world = World()
    world.rates.set_limit(None, 1)
    world.rates.set_limit("2001:DB8:0::1", 2)
    assert [world.opened(each, 50) for each in ("10.0.0.1", "10.0.0.2", "2001:db8::1")] == [10, 10, 20]
    world.rates.set_limit(None, None)
    assert world.opened("10.0.0.1", 50) == 50


def test_the_number_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_rates, "ADDRESSES_MAX", 3)
    world = World()
    world.rates.set_limit(None, 1)
    for number in range(9):
        world.rates.open(f"10.0.0.{number}")
    assert len(world.rates._rates) == 3
