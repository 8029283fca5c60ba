from __future__ import annotations

import pytest

from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.replica.client_rates import THROTTLE_MS_MAX
from rota.coordinator.replica.client_throttle import NS_PER_PERCENT, ClientThrottle


class World:
    def __init__(self) -> None:
        self.topics = Topics(EmbeddedStore(), broker_id=1, fresh_uuid=lambda: b"u" * 16)
        eager_tasks.run_eagerly(self.topics.load())
        self.installed: ClientThrottle | None = None

    def follow(self) -> None:
        ClientThrottle(self.topics, self.install, lambda: 0, windows=11, window_ms=1_000, mutation_burst_ms=22_000)

    def install(self, throttle: ClientThrottle | None) -> None:
        self.installed = throttle

    def set(self, kind: ConfigKind, name: str, **configs: str) -> None:
        eager_tasks.run_eagerly(self.topics.configs.update(kind, name, lambda _: configs))


def test_a_broker_without_quotas_has_no_throttle() -> None:
    world = World()
    world.follow()
    world.set(ConfigKind.GROUPS, "g", producer_byte_rate="5")
    assert world.installed is None


def test_each_quota_has_its_rate() -> None:
    world = World()
    world.follow()
    quotas = (
        (ConfigKind.USERS, "u", {"request_percentage": "50"}),
        (ConfigKind.CLIENTS, "c", {"controller_mutation_rate": "0.5"}),
        (ConfigKind.IPS, "<default>", {"connection_creation_rate": "5"}),
    )
    for kind, name, quota in quotas:
        world.set(kind, name, **quota)
        assert world.installed is not None
        world.set(kind, name)
        assert world.installed is None
    for kind, name, quota in quotas:
        world.set(kind, name, **quota)
    installed = world.installed
    assert installed is not None
    assert installed.requests.limits == {(("user", "u"),): 50 * NS_PER_PERCENT}
    assert installed.mutations.limits == {(("client-id", "c"),): 0.5}
    assert installed.connections.limits == {None: 5.0}
    assert [installed.delay_ms("10.0.0.1") for _ in range(51)].count(0) == 50
    assert installed.throttled == {"connection_creation_rate": (1, 200)}


def test_the_throttle_follows_the_quotas() -> None:
    world = World()
    world.follow()
    world.set(ConfigKind.USERS, "u", producer_byte_rate="5")
    assert world.installed is not None
    rates = world.installed.producers, world.installed.consumers
    assert [each.burst_bytes("u", "c") for each in rates] == [50, None]
    world.set(ConfigKind.USERS, "u", consumer_byte_rate="7")
    assert [each.burst_bytes("u", "c") for each in rates] == [None, 70]
    world.set(ConfigKind.USER_CLIENTS, "<default>/clients/c", producer_byte_rate="9")
    world.set(ConfigKind.USERS, "u")
    assert [each.burst_bytes("u", "c") for each in rates] == [90, None]
    world.set(ConfigKind.USER_CLIENTS, "<default>/clients/c")
    assert world.installed is None


def test_quotas_that_were_there_before_count() -> None:
    world = World()
    world.set(ConfigKind.CLIENTS, "<default>", consumer_byte_rate="5")
    world.follow()
    assert world.installed is not None
    assert world.installed.consumers.burst_bytes("u", "c") == 50


@pytest.mark.parametrize("value", ["5e-324", "1e-09", "1e+308", "inf"])
def test_a_quota_of_any_size_is_a_throttle_time_that_a_response_can_say(value: str) -> None:
    """CQ14. Two uses in one millisecond: the clock stands still."""
    world = World()
    world.follow()
    quotas = dict.fromkeys(("producer_byte_rate", "request_percentage", "controller_mutation_rate"), value)
    world.set(ConfigKind.USERS, "u", **quotas)
    world.set(ConfigKind.IPS, "<default>", connection_creation_rate=value)
    installed = world.installed
    assert installed is not None
    times_ms = [
        *(installed.producers.record("u", "c", 1_000_000) for _ in range(2)),
        *(installed.requests.record("u", "c", 1_000_000_000) for _ in range(2)),
        *(installed.mutations.take("u", "c", 1, is_strict=strict) for strict in (True, True, False)),
        *(installed.delay_ms("10.0.0.1") for _ in range(2)),
    ]
    is_none = float(value) > 1
    assert all(time == 0 if is_none else 0 <= time <= THROTTLE_MS_MAX for time in times_ms)
    assert is_none or times_ms.count(0) == 1  # the first mutation, which may bring the bucket below zero
