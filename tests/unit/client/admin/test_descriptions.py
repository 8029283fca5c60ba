"""Descriptions of both kinds of groups; those of classic ones are in test_groups.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.client.admin.descriptions import (
    GroupDescription,
    MemberDescription,
    from_consumer_group_describe,
    from_describe_groups,
)
from rota.client.network.metadata import BrokerInfo
from rota.client.types import TopicPartition
from rota.protocol.messages import consumer_group_describe as newer
from rota.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember

HERE = BrokerInfo(1, "h", 9092)


def test_a_group_of_the_consumer_protocol() -> None:
    has = newer.Assignment(
        topic_partitions=(newer.TopicPartitions(topic_id=bytes(16), topic_name="a", partitions=(0, 2)),)
    )
    member = newer.Member(
        member_id="m",
        instance_id="i",
        rack_id="r",
        member_epoch=3,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("a",),
        assignment=has,
        target_assignment=newer.Assignment(),
    )
    group = newer.DescribedGroup(
        group_id="g",
        group_state="Reconciling",
        group_epoch=4,
        assignment_epoch=4,
        assignor_name="uniform",
        members=(member,),
    )
    partitions = (TopicPartition("a", 0), TopicPartition("a", 2))
    described = MemberDescription("m", "i", "c", "/h", ("a",), partitions, rack="r")
    assert from_consumer_group_describe(group, HERE) == GroupDescription(
        "g", "Reconciling", "consumer", "uniform", (described,), HERE, "consumer"
    )


@given(metadata=st.binary(max_size=60), assignment=st.binary(max_size=60))
def test_bytes_of_any_kind_are_never_an_error(metadata: bytes, assignment: bytes) -> None:
    member = DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=metadata, member_assignment=assignment
    )
    answer = from_describe_groups(DescribedGroup(group_id="g", protocol_type="consumer", members=(member,)), None)
    assert (answer.members[0].metadata, answer.members[0].raw_assignment) == (metadata, assignment)
    assert answer.type == "classic"
