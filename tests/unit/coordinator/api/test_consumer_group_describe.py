"""What a group of the consumer protocol shows of itself."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld
from tests.unit.coordinator.api.test_consumer_group_heartbeat import heartbeat, joins

from rota.coordinator.api.consumer_group_describe import consumer_group_describe
from rota.coordinator.api.consumer_group_heartbeat import consumer_group_heartbeat
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup


def describe(world: GroupWorld, group_id: str = "g", version: int = 1) -> DescribedGroup:
    request = ConsumerGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=True)
    (group,) = world.send_request(consumer_group_describe, request, version).groups
    assert isinstance(group, DescribedGroup)
    return group


def test_members_are_shown_with_what_they_own_and_are_to_own() -> None:
    world = GroupWorld({"group.consumer.assignment.interval.ms": "0"}).open()
    heartbeat(world, joins(member_id="a", rack_id="r"))
    heartbeat(world, joins(member_id="b", instance_id="i"))
    heartbeat(world, joins(member_id="a", member_epoch=2, topic_partitions=None, rebalance_timeout_ms=-1))
    group = describe(world)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert (group.assignor_name, group.error_code) == ("uniform", ErrorCode.NONE)
    a, b = group.members
    assert (a.member_id, a.member_epoch, a.rack_id, a.member_type) == ("a", 2, "r", 1)
    assert (b.member_id, b.instance_id, b.subscribed_topic_names, b.subscribed_topic_regex) == ("b", "i", ("t",), "")
    # a has still to revoke partition 2, and is responsible for it until it has
    assert [topic.partitions for topic in a.assignment.topic_partitions] == [(0, 1, 2)]
    assert [topic.partitions for topic in a.target_assignment.topic_partitions] == [(0, 1)]
    assert [(topic.topic_name, topic.partitions) for topic in b.target_assignment.topic_partitions] == [("t", (2,))]
    assert group.authorized_operations > 0


def test_version_0_has_no_member_type() -> None:
    world = GroupWorld().open()
    heartbeat(world, joins())
    assert describe(world, version=0).members[0].member_type == -1


@pytest.mark.parametrize(
    ("group_id", "code", "text"),
    [
        ("none", ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        ("classic", ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a consumer group."),
        ("", ErrorCode.INVALID_GROUP_ID, None),
    ],
)
def test_other_groups_have_an_error(group_id: str, code: ErrorCode, text: str | None) -> None:
    world = GroupWorld().open()
    world.member("classic")
    group = describe(world, group_id)
    assert (group.error_code, group.error_message) == (code, text)


def test_a_refusal_that_quotes_a_long_group_id_fits_into_a_response() -> None:
    """Found by the fuzz of tests/chaos: the text was longer than a reader of the protocol accepts."""
    group = describe(GroupWorld().open(), "y" * 32_767)
    assert group.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert group.error_message is not None
    assert len(group.error_message) < 32_767


def test_a_description_waits_for_the_records_that_it_shows() -> None:
    """O1. An epoch that is not committed may be gone after a failover."""
    world = GroupWorld().open()
    world.serve(consumer_group_heartbeat, joins(), 1)
    described = world.serve(consumer_group_describe, ConsumerGroupDescribeRequest(group_ids=("g",)), 1)
    assert not described.answered
    world.turn()
    assert described.value.groups[0].group_epoch == 2


def test_without_the_consumer_protocol_no_group_is_described() -> None:
    world = GroupWorld({"group.coordinator.rebalance.protocols": "classic"}).open()
    group = describe(world)
    assert (group.group_id, group.error_code, group.error_message) == ("g", ErrorCode.UNSUPPORTED_VERSION, None)
