"""Which series are exposed: bounded, and stable from scrape to scrape."""

from __future__ import annotations

import pytest
from tests.chaos.requests import commit, create_topic
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.web import samples
from rota.coordinator.web.samples import OTHER, Exposed, Samples, shard_label
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest


def test_who_was_exposed_stays_exposed_while_it_exists() -> None:
    exposed = Exposed(2)
    exposed.update(["b", "c"])
    exposed.update(["a", "b", "c"])
    assert [key in exposed for key in "abc"] == [False, True, True]
    exposed.update(["a", "c", "d"])
    assert [key in exposed for key in "abcd"] == [True, False, True, False]


async def test_beyond_a_limit_series_are_summed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOPICS_MAX", "PARTITIONS_MAX", "LAG_PARTITIONS_MAX"):
        monkeypatch.setattr(samples, name, 1)
    await create_topic(world.kafka, "t", 3)
    await create_topic(world.kafka, "u", 2)
    await world.kafka.ask(FindCoordinatorRequest(key="g"), 2)
    for partition in range(3):
        await world.kafka.ask(commit("g", partition, 0), 7)
    read = [each for each in Samples(world.broker.http.site, "1").read() if each is not None]
    labels = {name: [each.labels for each in read if each.family == name] for name in {each.family for each in read}}
    assert labels["rota_topic_bytes_in"] == [("t",), (OTHER,)]
    assert labels["rota_log_end_offset"] == [("t", "0")]
    assert labels["rota_group_lag_records"] == [("g", "t", "0")]


@pytest.mark.parametrize(
    ("state", "is_leader", "label"),
    [
        (ShardState.READY, True, "active"),
        (ShardState.CATCHING_UP, True, "loading"),
        (ShardState.CATCHING_UP, False, "standby"),
        (ShardState.DOWN, True, "down"),
        (ShardState.DOWN, False, "down"),
    ],
)
def test_each_state_of_a_shard_has_a_word(state: ShardState, is_leader: bool, label: str) -> None:
    assert shard_label(state, is_leader=is_leader) == label
