"""Groups: every broker lists its own, coordinators describe and change them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.admin.conftest import Pair, until_version
from tests.unit.client.network.scripted import Scripted

from rota.client.admin.groups import (
    GroupListing,
    delete_groups,
    describe_group_if_exists,
    describe_groups,
    list_groups,
    remove_all_members,
    remove_members,
)
from rota.client.admin.requests import Deadline
from rota.client.config import ClientConfig
from rota.client.errors import AdminFailed, TimedOut, Unsupported
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition
from rota.protocol.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from rota.protocol.consumer_protocol import TopicPartition as TopicPartitions
from rota.protocol.errors import ErrorCode
from rota.protocol.messages import consumer_group_describe as newer
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from rota.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from rota.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from rota.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

SUBSCRIPTION = encode_subscription(
    Subscription(topics=("a",), owned_partitions=(TopicPartitions(topic="a", partitions=(0,)),), rack_id="r")
)
ASSIGNMENT = encode_assignment(Assignment(assigned_partitions=(TopicPartitions(topic="a", partitions=(0, 2)),)))


def lists(broker: Scripted, *groups: str, code: int = 0) -> None:
    reply = tuple(ListedGroup(group_id=item, protocol_type="consumer", group_state="Stable") for item in groups)
    broker.on(ListGroupsRequest, lambda _: ListGroupsResponse(groups=reply, error_code=code))


async def test_every_broker_lists_its_groups(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    lists(pair.one, "b", "d")
    lists(pair.two, "c", "a")
    reply = await list_groups(cluster, deadline, states=["Stable"], types=["classic"])
    assert list(reply) == ["a", "b", "c", "d"]
    assert reply["a"] == GroupListing("a", "consumer", "Stable")
    requests: Any = pair.requests(ListGroupsRequest)
    assert [(item.states_filter, item.types_filter) for received in requests for item in received] == [
        (("Stable",), ("classic",))
    ] * 2


async def test_an_unresponsive_broker_fails_with_the_groups_of_the_others(
    pair: Pair, cluster: Cluster, later: Deadline
) -> None:
    lists(pair.one, "a")
    pair.two.on(ListGroupsRequest, lambda _: None)
    with pytest.raises(AdminFailed) as failed:
        await list_groups(cluster, later, states=(), types=())
    assert list(failed.value.done[0]) == ["a"]
    assert isinstance(failed.value.failed[1], TimedOut)


@pytest.mark.parametrize(
    ("version_max", "filters"), [(3, {"states": ["Stable"], "types": ()}), (4, {"states": (), "types": ["classic"]})]
)
async def test_a_filter_is_refused_if_a_broker_does_not_support_it(
    deadline: Deadline, version_max: int, filters: Any
) -> None:
    async with Scripted(versions=until_version(ListGroupsRequest, version_max)) as broker:
        lists(broker, "a")
        cluster = Cluster(ClientConfig(bootstrap_servers=broker.address))
        await cluster.start()
        assert list(await list_groups(cluster, deadline, states=(), types=())) == ["a"]
        with pytest.raises(Unsupported):
            await list_groups(cluster, deadline, **filters)
        await cluster.close()


def test_a_group_without_members_protocol_only_keeps_offsets() -> None:
    assert GroupListing("a", "").is_simple
    assert not GroupListing("a", "consumer").is_simple


def not_newer(request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    not_found = (
        newer.DescribedGroup(group_id=name, error_code=69, group_epoch=0, assignment_epoch=0, assignor_name="")
        for name in request.group_ids
    )
    return ConsumerGroupDescribeResponse(groups=tuple(not_found))


def describes(pair: Pair, *groups: DescribedGroup) -> None:
    by_name = {item.group_id: item for item in groups}
    for broker in pair.both:
        broker.on(ConsumerGroupDescribeRequest, not_newer)
        broker.on(
            DescribeGroupsRequest,
            lambda request: DescribeGroupsResponse(groups=tuple(by_name[name] for name in request.groups)),
        )


def group_of(name: str, *members: DescribedGroupMember, **fields: Any) -> DescribedGroup:
    return DescribedGroup(
        group_id=name,
        **{"group_state": "Stable", "protocol_type": "consumer", "protocol_data": "range", "members": members} | fields,
    )


def member(name: str, instance: str | None = None, metadata: bytes = SUBSCRIPTION) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=name,
        group_instance_id=instance,
        client_id="rota",
        client_host="/127.0.0.1",
        member_metadata=metadata,
        member_assignment=ASSIGNMENT,
    )


async def test_member_metadata_and_assignments_are_decoded(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    describes(pair, group_of("g", member("m", "i")))
    pair.coordinators = {"g": 1}
    reply = (await describe_groups(cluster, ["g"], deadline))["g"]
    assert (reply.state, reply.protocol_type, reply.protocol) == ("Stable", "consumer", "range")
    assert reply.coordinator is not None
    assert reply.coordinator.id == 1
    (item,) = reply.members
    assert (item.member_id, item.group_instance_id, item.client_id, item.host) == ("m", "i", "rota", "/127.0.0.1")
    assert (item.topics, item.rack, item.owned) == (("a",), "r", (TopicPartition("a", 0),))
    assert item.assignment == (TopicPartition("a", 0), TopicPartition("a", 2))


async def test_bytes_that_are_no_subscription_are_left_alone(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    describes(
        pair,
        group_of("g", member("m", metadata=b"?")),
        group_of("connect", member("m", metadata=b"\0\1mine"), protocol_type="connect"),
        group_of("rebalancing", member("m", metadata=b"")),
    )
    reply = await describe_groups(cluster, ["g", "connect", "rebalancing"], deadline)
    assert {item.members[0].topics for item in reply.values()} == {()}
    assert reply["connect"].members[0].metadata == b"\0\1mine"
    assert reply["connect"].members[0].assignment == ()
    assert reply["rebalancing"].members[0].assignment == (TopicPartition("a", 0), TopicPartition("a", 2))


@pytest.mark.parametrize("code", [0, ErrorCode.GROUP_ID_NOT_FOUND])
async def test_an_unknown_group_is_group_id_not_found(
    pair: Pair, cluster: Cluster, deadline: Deadline, code: int
) -> None:
    """Up to DescribeGroups v5 it is Dead, without an error."""
    describes(pair, group_of("g"), group_of("gone", group_state="Dead", error_code=code))
    with pytest.raises(AdminFailed, match=r"group gone.*GROUP_ID_NOT_FOUND.*list_groups") as failed:
        await describe_groups(cluster, ["g", "gone"], deadline)
    assert failed.value.done["g"].state == "Stable"
    assert await describe_group_if_exists(cluster, "gone", deadline) is None
    found = await describe_group_if_exists(cluster, "g", deadline)
    assert found == failed.value.done["g"]


async def test_other_refusals_are_not_taken_for_absence(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    describes(pair, group_of("g", error_code=30))
    with pytest.raises(AdminFailed, match="GROUP_AUTHORIZATION_FAILED"):
        await describe_group_if_exists(cluster, "g", deadline)


async def test_groups_are_deleted_where_they_are(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.coordinators = {"b": 1}
    for broker in pair.both:
        broker.on(
            DeleteGroupsRequest,
            lambda request: DeleteGroupsResponse(
                results=tuple(
                    DeletableGroupResult(group_id=name, error_code=68 if name == "c" else 0)
                    for name in request.groups_names
                )
            ),
        )
    await delete_groups(cluster, ["a", "b"], deadline)
    with pytest.raises(AdminFailed, match=r"NON_EMPTY_GROUP.*remove_members") as failed:
        await delete_groups(cluster, ["a", "c"], deadline)
    assert list(failed.value.done) == ["a"]


def leaves(pair: Pair, **codes: int) -> None:
    pair.one.on(
        LeaveGroupRequest,
        lambda request: LeaveGroupResponse(
            members=tuple(
                MemberResponse(
                    member_id=item.member_id,
                    group_instance_id=item.group_instance_id,
                    error_code=codes.get(item.group_instance_id or item.member_id, 0),
                )
                for item in request.members
            )
        ),
    )


async def test_members_are_removed_by_id_and_static_ones_by_instance(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    leaves(pair)
    await remove_members(cluster, "g", deadline, members=["m"], instances=["i"], reason="because")
    request: Any = pair.requests(LeaveGroupRequest)[0][0]
    assert [(item.member_id, item.group_instance_id, item.reason) for item in request.members] == [
        ("", "i", "because"),
        ("m", None, "because"),
    ]


async def test_remove_all_members_removes_the_described_members(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    describes(pair, group_of("g", member("m"), member("n", "i")), group_of("empty"))
    leaves(pair)
    await remove_all_members(cluster, "g", deadline, reason="because")
    await remove_all_members(cluster, "empty", deadline, reason="because")
    (request,) = pair.requests(LeaveGroupRequest)[0]
    assert [(item.member_id, item.group_instance_id) for item in request.members] == [("", "i"), ("m", None)]  # type: ignore[attr-defined]


async def test_an_unknown_member_is_in_the_error(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    leaves(pair, m=ErrorCode.UNKNOWN_MEMBER_ID)
    with pytest.raises(AdminFailed, match="UNKNOWN_MEMBER_ID") as failed:
        await remove_members(cluster, "g", deadline, members=["m", "n"], instances=[], reason="")
    assert (list(failed.value.failed), list(failed.value.done)) == (["m"], ["n"])
    pair.one.on(LeaveGroupRequest, lambda _: LeaveGroupResponse(error_code=30))
    with pytest.raises(AdminFailed) as refused:
        await remove_members(cluster, "g", deadline, members=["m", "n"], instances=[], reason="")
    assert list(refused.value.failed) == ["m", "n"]


async def test_a_group_of_the_consumer_protocol_is_described_too(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    absent = ErrorCode.GROUP_ID_NOT_FOUND
    describes(pair, group_of("classic"), group_of("new", error_code=absent), group_of("gone", error_code=absent))

    def answer(request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
        found = (
            newer.DescribedGroup(
                group_id=name,
                error_code=0 if name == "new" else absent,
                group_state="Stable",
                group_epoch=1,
                assignment_epoch=1,
                assignor_name="uniform",
            )
            for name in request.group_ids
        )
        return ConsumerGroupDescribeResponse(groups=tuple(found))

    pair.one.on(ConsumerGroupDescribeRequest, answer)
    with pytest.raises(AdminFailed) as failed:
        await describe_groups(cluster, ["classic", "new", "gone"], deadline)
    assert list(failed.value.failed) == ["gone"]
    assert {name: item.type for name, item in failed.value.done.items()} == {"classic": "classic", "new": "consumer"}


async def test_ad6_a_group_that_may_not_be_described_is_not_one_that_does_not_exist(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    """Apache Kafka refuses to describe a group of the consumer protocol to who may not describe all its topics."""
    absent, refused = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    describes(pair, group_of("g", error_code=absent))
    hidden = newer.DescribedGroup(group_id="g", error_code=refused, group_epoch=0, assignment_epoch=0, assignor_name="")
    pair.one.on(ConsumerGroupDescribeRequest, lambda _: ConsumerGroupDescribeResponse(groups=(hidden,)))
    with pytest.raises(AdminFailed) as failed:
        await describe_group_if_exists(cluster, "g", deadline)
    assert failed.value.codes == {refused}


async def test_ad6_a_broker_that_does_not_know_the_consumer_protocol_says_that_a_group_does_not_exist(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    describes(pair, group_of("g", error_code=ErrorCode.GROUP_ID_NOT_FOUND))
    unknown = newer.DescribedGroup(
        group_id="g", error_code=ErrorCode.UNSUPPORTED_VERSION, group_epoch=0, assignment_epoch=0, assignor_name=""
    )
    pair.one.on(ConsumerGroupDescribeRequest, lambda _: ConsumerGroupDescribeResponse(groups=(unknown,)))
    assert await describe_group_if_exists(cluster, "g", deadline) is None


async def test_ad6_the_group_without_a_name_is_not_asked_for_in_the_consumer_protocol(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    """Its offsets can be set and reset; ConsumerGroupDescribe refuses its name."""
    describes(pair, group_of("", error_code=ErrorCode.GROUP_ID_NOT_FOUND))
    refused = newer.DescribedGroup(
        group_id="", error_code=ErrorCode.INVALID_GROUP_ID, group_epoch=0, assignment_epoch=0, assignor_name=""
    )
    pair.one.on(ConsumerGroupDescribeRequest, lambda _: ConsumerGroupDescribeResponse(groups=(refused,)))
    assert await describe_group_if_exists(cluster, "", deadline) is None
