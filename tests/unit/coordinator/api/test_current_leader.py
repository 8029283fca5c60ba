from __future__ import annotations

import pytest
from tests.unit.coordinator.api.test_fetch_by_followers import EPOCH, Cluster, placed

from rota.coordinator.api.current_leader import LeaderHints
from rota.coordinator.api.node import Call
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.current_leader import LeaderIdAndEpoch


@pytest.fixture
def world() -> Cluster:
    world = Cluster()
    world.node.topics.apply_states(world.topic_id, [placed(leader=2)])
    return world


def hints(world: Cluster) -> LeaderHints:
    return LeaderHints(world.node, Call(18, "test", "/127.0.0.1", "127.0.0.1", 9092, listener="PLAINTEXT"))


def test_the_leader_of_a_refused_partition_by_name_or_id(world: Cluster) -> None:
    found = hints(world)
    assert not found.has_leaders
    for name in ("t", world.topic_id):
        leader = found.leader_of((name, 0), ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert leader == LeaderIdAndEpoch(leader_id=2, leader_epoch=EPOCH)
    assert found.has_leaders
    assert [(one.node_id, one.host) for one in found.endpoints()] == [(2, "host2")]


def test_who_is_not_known_is_not_named(world: Cluster) -> None:
    found = hints(world)
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found.leader_of(("t", 0), ErrorCode.OFFSET_OUT_OF_RANGE) is None
    assert found.leader_of(("nope", 0), refused) is found.leader_of(("t", 7), refused) is None
    world.node.topics.apply_states(world.topic_id, [placed(leader=-1)])
    assert found.leader_of(("t", 0), refused) is None
    assert not found.has_leaders


def test_a_leader_that_is_not_alive_has_no_address(world: Cluster) -> None:
    found = hints(world)
    found.leader_of(("t", 0), ErrorCode.FENCED_LEADER_EPOCH)
    world.register(0, 1)
    assert found.endpoints() == ()
