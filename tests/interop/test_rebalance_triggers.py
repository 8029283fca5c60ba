"""R5, R14, R28: events that start a rebalance, and events that do not.

Joining and closing are in test_consumer_groups.py, crashes in test_failures.py.
"""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.kit import PATIENCE_S, create_topic, produce_to, unique, until
from tests.interop.layouts import until_sizes

EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)


@EVERY_CLIENT
def test_added_partitions(bootstrap: str, admin: AdminClient, join: Join, group: str, client: str) -> None:
    topic = create_topic(bootstrap, 2)
    members = [join(client, group=group, topics=[topic], client_id=f"member-{n}") for n in range(2)]
    until_sizes(members, 1, 1)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(PATIENCE_S)
    until_sizes(members, 2, 2)


@EVERY_CLIENT
def test_a_changed_subscription(bootstrap: str, join: Join, group: str, client: str) -> None:
    first, second = create_topic(bootstrap, 2), create_topic(bootstrap, 1)
    member = join(client, group=group, topics=[first])
    until_sizes([member], 2)
    member.subscribe([first, second])
    until(lambda: member.owned == {(first, 0), (first, 1), (second, 0)}, "both topics")
    member.subscribe([second])
    until(lambda: member.owned == {(second, 0)}, "the second topic alone")


@EVERY_CLIENT
def test_a_new_topic_that_matches_a_regular_expression(bootstrap: str, join: Join, group: str, client: str) -> None:
    family = unique("family")
    eldest = create_topic(bootstrap, 1, name=f"{family}-a")
    member = join(client, group=group, pattern=f"^{family}-.*")
    until(lambda: member.owned == {(eldest, 0)}, "the topic that was there")
    youngest = create_topic(bootstrap, 2, name=f"{family}-b")
    create_topic(bootstrap, 1, name=f"not-{family}")
    until(lambda: member.owned == {(eldest, 0), (youngest, 0), (youngest, 1)}, "the topic that came")
    produce_to(bootstrap, youngest, 1, [b"news"])
    until(lambda: member.values == [b"news"], "its record")


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
def test_r7_a_member_that_stops_polling_leaves_and_rejoins(bootstrap: str, join: Join, group: str, client: str) -> None:
    """max.poll.interval.ms: heartbeats go on, but the client leaves by itself."""
    topic = create_topic(bootstrap, 2)
    steady = join(client, group=group, topics=[topic], client_id="steady")
    stuck = join(client, group=group, topics=[topic], client_id="stuck", session_ms=1_500, poll_interval_ms=1_500)
    until_sizes([steady, stuck], 1, 1)
    times = stuck.assigned_times
    stuck.stop_polling()
    until(lambda: steady.partitions == {0, 1}, "the steady member to own all")
    stuck.resume_polling()
    until(lambda: stuck.assigned_times > times, "the stuck member's return")
    until_sizes([steady, stuck], 1, 1)


@EVERY_CLIENT
def test_assign_never_rebalances(bootstrap: str, join: Join, group: str, client: str) -> None:
    """A consumer that takes its partitions itself may share group and topic with members."""
    topic = create_topic(bootstrap, 2)
    member = join(client, group=group, topics=[topic])
    until_sizes([member], 2)
    before = member.assigned_times, list(member.lost)
    produce_to(bootstrap, topic, 1, [b"x"])
    loner = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        loner.assign([confluent_kafka.TopicPartition(topic, 1, 0)])
        message = until(lambda: loner.poll(0.1), "the record at the consumer that assigns")
        assert message.value() == b"x"
    finally:
        loner.close()
    assert (member.assigned_times, member.lost) == before
