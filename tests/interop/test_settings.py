"""R7, R20: the settings of a consumer that the coordinator stores and checks.

max.poll.interval.ms is in test_rebalance_triggers.py.
"""

from __future__ import annotations

import kafka
import pytest
from confluent_kafka.admin import AdminClient
from kafka.errors import InvalidSessionTimeoutError
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.kit import PATIENCE_S, create_topic, produce, until
from tests.interop.layouts import describe, until_sizes


@pytest.mark.parametrize("session_ms", [999, 1_800_001])
def test_a_session_timeout_outside_the_brokers_bounds_is_refused(bootstrap: str, group: str, session_ms: int) -> None:
    topic = create_topic(bootstrap, 1)
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=300,
        max_poll_interval_ms=max(300_000, session_ms),
        metrics_enabled=False,
    )
    try:
        with pytest.raises(InvalidSessionTimeoutError):
            consumer.poll(PATIENCE_S * 1000)
    finally:
        consumer.close(autocommit=False)


def test_max_poll_records(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce(bootstrap, topic, [b"%d" % number for number in range(20)])
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        max_poll_records=7,
        metrics_enabled=False,
    )
    sizes: list[int] = []

    def drained() -> bool:
        got = sum(len(records) for records in consumer.poll(400).values())
        sizes.extend([got] if got else [])
        return sum(sizes) == 20

    try:
        until(drained, "20 records")
    finally:
        consumer.close()
    assert sizes == [7, 7, 6]


@pytest.mark.parametrize("client", CLIENTS)
def test_describe_groups_has_client_ids_and_hosts_of_the_members(
    bootstrap: str, admin: AdminClient, join: Join, group: str, client: str
) -> None:
    topic = create_topic(bootstrap, 2)
    member = join(client, group=group, topics=[topic], client_id="visible", instance="the-one")
    until_sizes([member], 2)
    description = describe(admin, group)
    assert description.state.name == "STABLE"
    assert description.partition_assignor == "range"
    (shown,) = description.members
    assert shown.client_id == "visible"
    assert shown.group_instance_id == "the-one"
    assert shown.member_id.startswith("the-one-")
    assert shown.host == "/127.0.0.1"
    assert {(p.topic, p.partition) for p in shown.assignment.topic_partitions} == member.owned
