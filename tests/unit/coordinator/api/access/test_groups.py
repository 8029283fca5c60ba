"""Groups and committed offsets of which a part is allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.coordinator.api.access import access_world
from tests.unit.coordinator.api.access.access_world import CONSUMERS, GROUP, TOPIC, AccessWorld, granted
from tests.unit.coordinator.api.group_world import join_request

from rota.coordinator.security.acl import ResourcePattern
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from rota.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rota.protocol.messages.delete_groups import DeleteGroupsRequest
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.list_groups import ListGroupsRequest
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from rota.protocol.messages.sync_group import SyncGroupRequest

TOPIC_DENIED, GROUP_DENIED = 29, 30
MEMBER = f"GROUP:LITERAL:{GROUP} READ"


def commit_of(*names: str) -> OffsetCommitRequest:
    partitions = (OffsetCommitRequestPartition(partition_index=0, committed_offset=5),)
    return OffsetCommitRequest(
        group_id=GROUP, topics=tuple(OffsetCommitRequestTopic(name=name, partitions=partitions) for name in names)
    )


def codes(topics: Any) -> list[tuple[str, int]]:
    return [(topic.name, topic.partitions[0].error_code) for topic in topics]


def test_offsets_of_allowed_topics_are_committed() -> None:
    world = AccessWorld(granted(MEMBER, "TOPIC:LITERAL:t READ"))
    assert codes(world.send(8, commit_of(TOPIC, "t"), 8).topics) == [(TOPIC, TOPIC_DENIED), ("t", 0)]
    (group,) = [group for group in world.node.groups.machines() if group.group_id == GROUP]
    assert {key: value.offset for key, value in group.offsets.items()} == {("t", 0): 5, (TOPIC, 0): 1}


def test_a_commit_without_read_on_the_group_has_the_error_of_the_group() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t READ"))
    assert codes(world.send(8, commit_of("t"), 8).topics) == [("t", GROUP_DENIED)]


@pytest.mark.parametrize("version", [1, 2, 7])
def test_offsets_of_visible_topics_are_fetched(version: int) -> None:
    request = OffsetFetchRequest(
        group_id=GROUP,
        topics=tuple(OffsetFetchRequestTopic(name=name, partition_indexes=(0,)) for name in (TOPIC, "t")),
    )
    world = AccessWorld(granted(MEMBER, "TOPIC:LITERAL:t READ"))
    response = world.send(9, request, version)
    assert codes(response.topics) == [("t", 0), (TOPIC, TOPIC_DENIED)]
    refused = AccessWorld(granted()).send(9, request, version)
    assert refused.error_code == GROUP_DENIED
    assert codes(refused.topics) == ([(TOPIC, GROUP_DENIED), ("t", GROUP_DENIED)] if version == 1 else [])
    if version >= 2:
        assert world.send(9, OffsetFetchRequest(group_id=GROUP, topics=None), version).topics == ()


@pytest.mark.parametrize("version", [8, 9])
def test_offsets_of_several_groups(version: int) -> None:
    topics = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=(0,)) for name in (TOPIC, "t"))
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(group_id="other", topics=None),
            OffsetFetchRequestGroup(group_id=GROUP, topics=topics),
            OffsetFetchRequestGroup(group_id=GROUP, topics=None),
        )
    )
    named, everything, refused = AccessWorld(granted(MEMBER)).send(9, request, version).groups
    assert codes(named.topics) == [(TOPIC, TOPIC_DENIED), ("t", TOPIC_DENIED)]
    assert (everything.error_code, everything.topics) == (0, ())
    assert (refused.group_id, refused.error_code) == ("other", GROUP_DENIED)


def test_offsets_by_topic_id() -> None:
    """O5. The errors are last, in the order of the request."""
    world = AccessWorld(granted(MEMBER, "TOPIC:LITERAL:t READ"))
    denied, granted_id = (world.node.topics.get(name).topic_id for name in (TOPIC, "t"))  # type: ignore[union-attr]
    first, last = b"\1" * 16, b"\2" * 16
    ids = first, denied, last, granted_id
    topics = tuple(OffsetFetchRequestTopics(topic_id=each, partition_indexes=(0,)) for each in ids)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=topics),))
    (group,) = world.send(9, request, 10).groups
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in group.topics] == [
        (granted_id, 0),
        (first, ErrorCode.UNKNOWN_TOPIC_ID),
        (denied, TOPIC_DENIED),
        (last, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    everything = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),))
    assert world.send(9, everything, 10).groups[0].topics == ()


def test_groups_that_may_not_be_described_are_not_listed() -> None:
    assert AccessWorld(granted()).send(16, ListGroupsRequest(), 4).groups == ()
    for grant, visible in ((MEMBER, {GROUP}), ("CLUSTER:LITERAL:kafka-cluster DESCRIBE", {GROUP, CONSUMERS})):
        groups = AccessWorld(granted(grant)).send(16, ListGroupsRequest(), 4).groups
        assert {group.group_id for group in groups} == visible


def test_described_groups_have_their_authorized_operations() -> None:
    request = DescribeGroupsRequest(groups=("other", GROUP), include_authorized_operations=True)
    refused, described = AccessWorld(granted(MEMBER)).send(15, request, 5).groups
    assert (refused.group_id, refused.error_code, refused.group_state) == ("other", GROUP_DENIED, "")
    assert (described.group_state, described.authorized_operations) == ("Empty", 1 << 3 | 1 << 8)
    without = DescribeGroupsRequest(groups=(GROUP,))
    assert AccessWorld(granted(MEMBER)).send(15, without, 5).groups[0].authorized_operations == -(1 << 31)


def test_groups_are_deleted_with_delete() -> None:
    world = AccessWorld(granted(f"GROUP:LITERAL:{GROUP} DELETE"))
    results = world.send(42, DeleteGroupsRequest(groups_names=("other", GROUP)), 2).results
    assert [(result.group_id, result.error_code) for result in results] == [(GROUP, 0), ("other", GROUP_DENIED)]


def test_coordinators_of_several_keys() -> None:
    world = AccessWorld(granted(MEMBER))
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("other", GROUP))
    found, refused = world.send(10, request, 4).coordinators
    assert (found.key, found.error_code, found.node_id) == (GROUP, 0, 0)
    assert (refused.key, refused.error_code, refused.node_id, refused.port) == ("other", GROUP_DENIED, -1, -1)
    old = world.send(10, FindCoordinatorRequest(key="other"), 1)
    assert (old.error_code, old.node_id, old.host, old.port) == (GROUP_DENIED, -1, "", -1)


def test_offsets_are_deleted_with_delete_on_the_group_and_read_on_the_topic() -> None:
    partitions = (OffsetDeleteRequestPartition(partition_index=0),)
    request = OffsetDeleteRequest(
        group_id=GROUP, topics=tuple(OffsetDeleteRequestTopic(name=n, partitions=partitions) for n in ("t", TOPIC))
    )
    world = AccessWorld(granted(f"GROUP:LITERAL:{GROUP} DELETE", "TOPIC:LITERAL:t READ"))
    assert codes(world.send(47, request, 0).topics) == [(TOPIC, TOPIC_DENIED), ("t", 0)]
    assert AccessWorld(granted(MEMBER)).send(47, request, 0).error_code == GROUP_DENIED


def test_an_error_of_the_group_stands_above_those_of_refused_topics() -> None:
    request = OffsetDeleteRequest(
        group_id="missing-group",
        topics=(OffsetDeleteRequestTopic(name=TOPIC, partitions=(OffsetDeleteRequestPartition(partition_index=0),)),),
    )
    response = AccessWorld(granted("GROUP:LITERAL:missing-group DELETE")).send(47, request, 0)
    assert (response.error_code, response.topics) == (69, ())


def test_a_member_needs_read_on_its_group() -> None:
    for key, request in ((11, access_world.join_group), (13, access_world.leave_group)):
        assert AccessWorld(granted()).send(key, next(request(5)), 5).error_code == GROUP_DENIED
        assert AccessWorld(granted(MEMBER)).send(key, next(request(5)), 5).error_code != GROUP_DENIED


@pytest.mark.parametrize("key", [11, 14])
def test_a_member_whose_permission_ends_while_it_waits_is_told_nothing(key: int) -> None:
    world = AccessWorld(authorizer := granted(MEMBER))
    routes = world.routes
    first = world.send(11, join_request(GROUP), 3)
    assert (first.error_code, first.leader) == (0, first.member_id)
    join = routes[11].serve(world.node, access_world.call(3), join_request(GROUP))
    assert not join.answered
    if key == 14:  # both are in the next generation; the follower waits for the assignment of the leader
        world.send(11, join_request(GROUP, first.member_id), 3)
        joined = world.finish(join)
        waiting = routes[14].serve(
            world.node,
            access_world.call(3),
            SyncGroupRequest(group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id),
        )
        assert not waiting.answered
    else:
        waiting = join
    authorizer.replace(ResourcePattern.parse(f"GROUP:LITERAL:{GROUP}"), ())
    reply = world.finish(waiting)
    assert reply.error_code == GROUP_DENIED
    assert not (reply.members if key == 11 else reply.assignment)


def heartbeat_of(*names: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=names,
        topic_partitions=(),
    )


def test_a_member_of_the_consumer_protocol_names_topics_that_it_may_describe() -> None:
    world = AccessWorld(granted(MEMBER, "TOPIC:LITERAL:t DESCRIBE"))
    assert world.send(68, heartbeat_of(TOPIC, "t"), 1).error_code == TOPIC_DENIED
    assert world.send(68, heartbeat_of("t"), 1).error_code == 0
    assert AccessWorld(granted("TOPIC:LITERAL:t DESCRIBE")).send(68, heartbeat_of("t"), 1).error_code == GROUP_DENIED


def test_a_regular_expression_matches_what_the_client_may_describe() -> None:
    world = AccessWorld(granted(MEMBER, "TOPIC:LITERAL:t DESCRIBE"))
    world.send(68, replace(heartbeat_of(), subscribed_topic_names=None, subscribed_topic_regex=".*"), 1)
    group = next(group for group in world.node.groups.machines() if group.group_id == GROUP)
    assert group.consumer is not None
    assert group.consumer.regexes[".*"].topics == {"t"}


def test_a_group_with_topics_that_may_not_be_described_is_not_shown() -> None:
    request = ConsumerGroupDescribeRequest(group_ids=(CONSUMERS,), include_authorized_operations=True)
    for grants, code in (
        ((), GROUP_DENIED),
        ((f"GROUP:LITERAL:{CONSUMERS} DESCRIBE",), TOPIC_DENIED),
        ((f"GROUP:LITERAL:{CONSUMERS} DESCRIBE", f"TOPIC:LITERAL:{TOPIC} DESCRIBE"), 0),
    ):
        (group,) = AccessWorld(granted(*grants)).send(69, request, 1).groups
        assert (group.error_code, bool(group.members)) == (code, code == 0)
        assert (group.authorized_operations == 1 << 8) == (code == 0)
