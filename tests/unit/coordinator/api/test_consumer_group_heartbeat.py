"""The checks of the request itself, and a whole conversation through the runtime."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld, commit_request

from rota.coordinator.api.consumer_group_heartbeat import consumer_group_heartbeat
from rota.coordinator.api.describe_groups import describe_groups
from rota.coordinator.api.list_groups import list_groups
from rota.coordinator.api.offset_commit import offset_commit
from rota.coordinator.api.offset_fetch import offset_fetch
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventType
from rota.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.list_groups import ListGroupsRequest
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup


def joins(**more: Any) -> ConsumerGroupHeartbeatRequest:
    fields: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ("t",),
        "topic_partitions": (),
    }
    return ConsumerGroupHeartbeatRequest(**{**fields, **more})


def heartbeat(
    world: GroupWorld, request: ConsumerGroupHeartbeatRequest, version: int = 1
) -> ConsumerGroupHeartbeatResponse:
    response = world.send_request(consumer_group_heartbeat, request, version)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


def world_with_member() -> GroupWorld:
    world = GroupWorld().open()
    assert not heartbeat(world, joins()).error_code
    return world


def test_without_the_consumer_protocol_a_member_gets_unsupported_version() -> None:
    """As on a Kafka 4.3.1 with this property, also for a request that is invalid."""
    world = GroupWorld({"group.coordinator.rebalance.protocols": "classic, streams"}).open()
    for request in (joins(), joins(group_id="")):
        refused = heartbeat(world, request)
        assert (refused.error_code, refused.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
    assert world.member("classic")


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (joins(member_id=""), "MemberId can't be empty."),
        (joins(member_id=" \t"), "MemberId can't be empty."),
        (joins(group_id=""), "GroupId can't be empty."),
        (joins(instance_id=""), "InstanceId can't be empty."),
        (joins(rack_id=""), "RackId can't be empty."),
        (joins(rack_id="\n"), "RackId can't be empty."),
        (joins(rebalance_timeout_ms=-1), "RebalanceTimeoutMs must be provided in first request."),
        (joins(topic_partitions=None), "TopicPartitions must be empty when (re-)joining."),
        (
            joins(topic_partitions=(TopicPartitions(topic_id=bytes(16)),)),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            joins(subscribed_topic_names=None),
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (joins(member_epoch=-2), "InstanceId can't be null."),
        (joins(member_epoch=-3), "MemberEpoch is invalid."),
    ],
)
def test_an_invalid_request_is_refused(request_: ConsumerGroupHeartbeatRequest, text: str) -> None:
    response = heartbeat(GroupWorld().open(), request_)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, text)


def test_only_what_javas_trim_removes_is_empty() -> None:
    assert not heartbeat(GroupWorld().open(), joins(instance_id="\N{NO-BREAK SPACE}")).error_code


@pytest.mark.parametrize(("epoch", "is_valid"), [(0, True), (1, False), (-1, False)])
def test_up_to_version_0_the_coordinator_may_make_the_member_id(epoch: int, is_valid: bool) -> None:
    response = heartbeat(GroupWorld().open(), joins(member_id="", member_epoch=epoch), version=0)
    assert (response.error_code == ErrorCode.NONE) == is_valid
    assert bool(response.member_id) == is_valid


def test_cg26_an_id_that_the_coordinator_makes_is_of_kafkas_form() -> None:
    answer = heartbeat(GroupWorld().open(), joins(member_id=""), 0)
    assert answer.member_id is not None
    assert len(b64decode(answer.member_id + "==", b"-_", validate=True)) == 16


def test_an_assignor_that_is_not_configured_is_refused() -> None:
    response = heartbeat(GroupWorld().open(), joins(server_assignor="mine"))
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert response.error_message == "ServerAssignor mine is not supported. Supported assignors: uniform, range."


def test_tl4_an_assignor_that_is_not_configured_is_counted_in_the_timeline_of_a_group_that_is_there() -> None:
    world = GroupWorld().open()
    heartbeat(world, joins(server_assignor="mine"))
    assert world.node.groups.timelines.of("g") == ()
    heartbeat(world, joins())
    heartbeat(world, joins(member_id="other", server_assignor="mine"))
    refused = world.node.groups.timelines.of("g")[-1]
    assert (refused.type, refused.error_code) == (EventType.MEMBER_REFUSED, ErrorCode.UNSUPPORTED_ASSIGNOR)
    assert refused.reason.startswith("ServerAssignor mine is not supported.")


def test_tl14_a_rebalance_is_counted_until_the_members_have_their_partitions() -> None:
    world = world_with_member()
    ended = world.node.groups.notes.rebalances.ended["member-joined"]
    world.now_ms += 1_000  # the assignment interval
    heartbeat(world, joins(member_id="n"))
    heartbeats = joins(member_epoch=2, rebalance_timeout_ms=-1, subscribed_topic_names=None)
    kept = heartbeat(world, replace(heartbeats, topic_partitions=None)).assignment
    assert ended.requests == 1
    assert kept is not None
    heartbeat(world, replace(heartbeats, topic_partitions=kept.topic_partitions))
    assert ended.requests == 1
    heartbeat(world, replace(heartbeats, member_id="n", member_epoch=3))
    assert ended.requests == 2


def test_a_member_joins_and_gets_the_partitions() -> None:
    world = GroupWorld().open()
    response = heartbeat(world, joins())
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("m", 2, 5_000)
    assert response.assignment is not None
    assert [topic.partitions for topic in response.assignment.topic_partitions] == [(0, 1, 2)]
    assert heartbeat(world, joins(member_epoch=2, topic_partitions=None, rebalance_timeout_ms=-1)).assignment is None


def test_the_configs_of_a_group_count_before_those_of_the_broker() -> None:
    world = GroupWorld({"group.consumer.heartbeat.interval.ms": "6000"}).open()
    assert heartbeat(world, joins()).heartbeat_interval_ms == 6_000


def test_a_broker_that_is_not_the_coordinator_says_so() -> None:
    assert heartbeat(GroupWorld(), joins()).error_code == ErrorCode.NOT_COORDINATOR


def test_lists_and_descriptions_know_the_type() -> None:
    world = world_with_member()
    listed = world.send_request(list_groups, ListGroupsRequest(types_filter=("Consumer",)), 5).groups
    assert [(each.group_id, each.group_type, each.protocol_type, each.group_state) for each in listed] == [
        ("g", "consumer", "consumer", "Stable")
    ]
    assert not world.send_request(list_groups, ListGroupsRequest(types_filter=("classic",)), 5).groups
    (old,) = world.send_request(describe_groups, DescribeGroupsRequest(groups=("g",)), 5).groups
    assert (old.group_state, old.error_code) == ("Dead", ErrorCode.NONE)
    (new,) = world.send_request(describe_groups, DescribeGroupsRequest(groups=("g",)), 6).groups
    assert (new.error_code, new.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a classic group.")


@pytest.mark.parametrize(
    ("version", "epoch", "code"),
    [(9, 2, ErrorCode.NONE), (9, 3, ErrorCode.STALE_MEMBER_EPOCH), (8, 2, ErrorCode.UNSUPPORTED_VERSION)],
)
def test_offsets_are_committed_with_the_member_epoch(version: int, epoch: int, code: ErrorCode) -> None:
    world = world_with_member()
    request = commit_request(7, member_id="m", generation_id_or_member_epoch=epoch)
    response = world.send_request(offset_commit, request, version)
    assert response.topics[0].partitions[0].error_code == code


def test_offsets_are_fetched_with_the_member_epoch() -> None:
    world = world_with_member()
    for member_id, epoch, code in (("m", 2, 0), ("m", 1, 113), ("x", 2, 25), (None, -1, 0)):
        group = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=None)
        response = world.send_request(offset_fetch, OffsetFetchRequest(groups=(group,)), 9)
        assert response.groups[0].error_code == code


def test_a_group_is_the_same_after_its_shard_was_loaded_again() -> None:
    world = world_with_member()
    shard = next(shard for shard in world.node.groups.shards if shard.machines)
    world.node.groups.resign(shard.index)
    world.node.groups.lead(shard.index, 1)
    for _ in range(4):
        world.turn()
    response = heartbeat(world, joins(member_epoch=2, topic_partitions=None, rebalance_timeout_ms=-1))
    assert (response.error_code, response.member_epoch) == (ErrorCode.NONE, 2)


PLAIN = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2, rebalance_timeout_ms=-1)


def test_a_heartbeat_that_says_nothing_new_is_answered_at_once() -> None:
    """Law CG19: without an event; it has nothing that could be written."""
    world = world_with_member()
    response = world.serve(consumer_group_heartbeat, PLAIN, 1)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m", 2)
    assert (response.heartbeat_interval_ms, response.assignment) == (5_000, None)


def test_it_waits_for_the_writes_before_it() -> None:
    """Law CG19: its epoch is in the log before the member is told."""
    world = GroupWorld().open()
    world.serve(consumer_group_heartbeat, joins(), 1)
    response = world.serve(consumer_group_heartbeat, PLAIN, 1)
    assert isinstance(response, DelayedReply)
    assert not response.answered
    world.turn()
    assert response.answered
