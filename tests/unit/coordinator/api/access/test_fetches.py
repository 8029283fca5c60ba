"""Fetch: sessions, followers, and delayed fetches whose permission ends."""

from __future__ import annotations

from typing import Any

from tests.unit.coordinator.api.access.access_world import TOPIC, AccessWorld, call, granted
from tests.unit.coordinator.api.data_world import batch, fetch_request

from rota.coordinator.api.fetch import fetch
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.acl import ResourcePattern
from rota.protocol.messages.fetch import ReplicaState

DENIED = 29


def codes(response: Any) -> list[tuple[str, int, bool]]:
    """(topic, error code, whether there are records) of each partition."""
    return [
        (topic.topic, each.error_code, bool(each.records)) for topic in response.responses for each in topic.partitions
    ]


def test_records_of_allowed_topics_are_returned() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t READ"))
    world.append(b"x", name="t")
    response = world.send(1, fetch_request(("t", 0, 0), (TOPIC, 0, 0), ("missing", 0, 0)), 12)
    assert codes(response) == [("t", 0, True), (TOPIC, DENIED, False), ("missing", DENIED, False)]


def test_topics_by_id_are_checked_by_their_name() -> None:
    world = AccessWorld(granted())
    topic_id = world.node.topics.get(TOPIC).topic_id  # type: ignore[union-attr]
    response = world.send(1, fetch_request((topic_id, 0, 0), (b"\xff" * 16, 0, 0)), 13)
    assert [each.error_code for topic in response.responses for each in topic.partitions] == [DENIED, 100]


def test_each_fetch_of_a_session_is_checked() -> None:
    """A session names its partitions once; a permission that ends later ends the reading."""
    world = AccessWorld(authorizer := granted("TOPIC:LITERAL:t READ"))
    first = world.send(1, fetch_request(("t", 0, 0), session_id=0, session_epoch=0), 12)
    assert first.session_id
    world.append(b"x", name="t")
    authorizer.replace(ResourcePattern.parse("TOPIC:LITERAL:t"), ())
    second = world.send(1, fetch_request(session_id=first.session_id, session_epoch=1), 12)
    assert codes(second) == [("t", DENIED, False)]


async def test_a_delayed_fetch_returns_no_records_of_a_topic_after_its_acl_is_removed() -> None:
    world = AccessWorld(authorizer := granted("TOPIC:LITERAL:t READ", f"TOPIC:LITERAL:{TOPIC} READ"))
    request = fetch_request(("t", 0, 0), (TOPIC, 0, 1), max_wait_ms=500)
    reply = fetch(world.node, call(12), request)
    assert isinstance(reply, DelayedReply)
    authorizer.replace(ResourcePattern.parse("TOPIC:LITERAL:t"), ())
    world.partition("t").append(batch(b"late"), world.now_ms)
    assert codes(world.finish(reply)) == [(TOPIC, 0, False), ("t", DENIED, False)]


async def test_a_delayed_fetch_is_not_affected_by_acls_of_other_topics() -> None:
    world = AccessWorld(authorizer := granted("TOPIC:LITERAL:t READ"))
    reply = fetch(world.node, call(12), fetch_request(("t", 0, 0), max_wait_ms=500))
    authorizer.replace(ResourcePattern.parse("TOPIC:LITERAL:other"), ())
    world.partition("t").append(batch(b"late"), world.now_ms)
    assert codes(world.finish(reply)) == [("t", 0, True)]


def test_a_follower_needs_cluster_action() -> None:
    request = fetch_request(("t", 0, 0), replica_id=1)
    for grant, code in (("TOPIC:LITERAL:t ALL", DENIED), ("CLUSTER:LITERAL:kafka-cluster CLUSTER_ACTION", 6)):
        assert codes(AccessWorld(granted(grant)).send(1, request, 12)) == [("t", code, False)]
    newer = fetch_request(("t", 0, 0), replica_state=ReplicaState(replica_id=1, replica_epoch=5))
    assert codes(AccessWorld(granted("TOPIC:LITERAL:t ALL")).send(1, newer, 15))[0][1] == DENIED  # whatever it names
