"""A group as plain values."""

from __future__ import annotations

from tests.unit.testing.clients import consumer, produce, take

from rota.testing import RunningBroker
from rota.testing.group_snapshot import NOT_LOADED, snapshot


def test_a_group_without_coordinator_is_not_loaded() -> None:
    assert snapshot("g", None) == {
        "group": "g",
        "coordinator": None,
        "state": NOT_LOADED,
        "generation": -1,
        "members": [],
        "offsets": {},
    }


def test_members_assignments_and_offsets(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    with consumer(broker.bootstrap_servers, "shown", topic, group_instance_id="i") as member:
        member.commit(take(member, 1)[0], asynchronous=False)
        described = broker.group("shown").describe()
    (only,) = described["members"]
    assert (described["state"], described["offsets"]) == ("Stable", {topic: {"0": 1}})
    assert (only["client_id"], only["instance_id"], only["is_leader"]) == ("reader", "i", True)
    assert only["assignment"] == {topic: [0]}
    assert broker.group("unknown").describe()["state"] == "Dead"
