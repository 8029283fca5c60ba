"""A group of many members, some of which leave while others join."""

from __future__ import annotations

from tests.interop.conftest import Join
from tests.interop.kit import create_topic, produce, until
from tests.interop.layouts import layout, until_sizes

MEMBERS = 20


def test_twenty_members_join_at_once(bootstrap: str, join: Join, group: str) -> None:
    topic = create_topic(bootstrap, MEMBERS)
    members = [join("confluent-kafka", group=group, topics=[topic]) for _ in range(MEMBERS)]
    until_sizes(members, *[1] * MEMBERS)
    produce(bootstrap, topic, [b"%d" % number for number in range(MEMBERS)])
    until(lambda: [len(member.values) for member in members] == [1] * MEMBERS, "one record each")


def test_half_of_the_members_leave_while_others_join(bootstrap: str, join: Join, group: str) -> None:
    topic = create_topic(bootstrap, 10)
    going = [join("confluent-kafka", group=group, topics=[topic]) for _ in range(5)]
    until_sizes(going, *[2] * 5)
    coming = [join("confluent-kafka", group=group, topics=[topic]) for _ in range(5)]
    for member in going:
        member.stop()
    for member in going:
        member.close()
    until(lambda: sorted(len(owned) for owned in layout(coming)) == [2] * 5, "two partitions for each that stayed")
    assert set().union(*layout(coming)) == set(range(10))
