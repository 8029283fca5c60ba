"""R1, R2: the delivery of records and the ownership of partitions while members join and leave."""

from __future__ import annotations

import pytest
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.kit import create_topic, produce_to, unique, until
from tests.interop.layouts import layout, until_sizes
from tests.interop.members import Member

EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)


@EVERY_CLIENT
def test_r1_one_member_of_a_group_gets_a_record_and_every_group_gets_it(
    bootstrap: str, join: Join, client: str
) -> None:
    topic = create_topic(bootstrap, 3)
    alone, three = unique("group1"), unique("group2")
    only = join(client, group=alone, topics=[topic])
    members = [join(client, group=three, topics=[topic], client_id=f"member-{n}") for n in range(3)]
    until_sizes([only], 3)
    until_sizes(members, 1, 1, 1)
    for partition, key in enumerate([b"1", b"2", b"3"]):
        produce_to(bootstrap, topic, partition, [key])
    until(lambda: len(only.values) == 3, "all three records at group1's only member")
    until(lambda: [len(member.values) for member in members] == [1, 1, 1], "one record at each member of group2")
    assert sorted(only.values) == [b"1", b"2", b"3"]
    assert sorted(member.values[0] for member in members) == [b"1", b"2", b"3"]
    for member in members:
        assert {record.partition for record in member.records} == member.partitions


@EVERY_CLIENT
def test_r2_one_then_four_then_one_consumer_over_three_partitions(
    bootstrap: str, join: Join, group: str, client: str
) -> None:
    topic = create_topic(bootstrap, 3)
    # range sorts by member id, and that begins with the client id
    members: list[Member] = []
    for number, expected in enumerate([(3,), (2, 1), (1, 1, 1), (1, 1, 1, 0)], start=1):
        members.append(join(client, group=group, topics=[topic], client_id=f"consumer{number}"))
        until_sizes(members, *expected)
        if number == 2:
            assert layout(members) == [{0, 1}, {2}]
    assert layout(members) == [{0}, {1}, {2}, set()]
    for left, expected in [(3, (1, 1, 1)), (2, (2, 1)), (1, (3,))]:
        members.pop(0).close()
        assert len(members) == left
        until_sizes(members, *expected)


@EVERY_CLIENT
def test_r2_order_holds_within_a_partition_across_a_handover(
    bootstrap: str, join: Join, group: str, client: str
) -> None:
    topic = create_topic(bootstrap, 1)
    first = join(client, group=group, topics=[topic], auto_commit=True)
    produce_to(bootstrap, topic, 0, [b"%d" % number for number in range(50)])
    until(lambda: len(first.values) == 50, "the first half")
    first.close()  # commits as it leaves
    second = join(client, group=group, topics=[topic])
    produce_to(bootstrap, topic, 0, [b"%d" % number for number in range(50, 100)])
    until(lambda: len(second.values) >= 50, "the second half")
    assert first.values + second.values == [b"%d" % number for number in range(100)]
