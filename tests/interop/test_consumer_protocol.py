"""Groups of the consumer protocol (KIP-848) with librdkafka's members; test_java_tools.py has Kafka's own tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.interop.kit import PATIENCE_S, create_topic, produce, until

PARTITIONS = 6
RECORDS = 60
POLL_S = 0.05


@contextmanager
def member(bootstrap: str, group: str, **settings: str) -> Iterator[Consumer]:
    """A member with `group.protocol=consumer`; it leaves at the end."""
    fixed = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"}
    consumer = Consumer({**fixed, "auto.offset.reset": "earliest", "enable.auto.commit": "false", **settings})
    try:
        yield consumer
    finally:
        consumer.close()


def owned(members: list[Consumer]) -> list[set[tuple[str, int]]]:
    """Poll each member once, which applies its assignment; return who owns what. Records are read again later."""
    for each in members:
        each.poll(POLL_S)
    return [{(part.topic, part.partition) for part in each.assignment()} for each in members]


def until_shares(members: list[Consumer], sizes: list[int]) -> list[set[tuple[str, int]]]:
    """Wait until the members own as many partitions as `sizes` says, none of them twice."""

    def shares() -> list[set[tuple[str, int]]] | None:
        found = owned(members)
        assert sum(map(len, found)) == len(set().union(*found)), f"a partition has two owners: {found}"
        return found if sorted(map(len, found)) == sorted(sizes) else None

    found = until(shares, f"partitions by member: {sizes}")
    assert found is not None
    return found


def test_two_members_share_the_partitions_and_the_one_that_stays_gets_them_back(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, PARTITIONS)
    with member(bootstrap, group) as first:
        first.subscribe([topic])
        before = until_shares([first], [PARTITIONS])[0]
        with member(bootstrap, group) as second:
            second.subscribe([topic])
            shares = until_shares([first, second], [3, 3])
            assert shares[0] < before  # what stays with its member does not move
        until_shares([first], [PARTITIONS])


def test_committed_offsets_are_where_the_next_member_begins(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce(bootstrap, topic, [b"%d" % index for index in range(RECORDS)])
    with member(bootstrap, group) as first:
        first.subscribe([topic])
        record = until(lambda: first.poll(POLL_S), "a record")
        assert record.value() == b"0"
        first.commit(offsets=[TopicPartition(topic, 0, 20)], asynchronous=False)
    with member(bootstrap, group) as second:
        second.subscribe([topic])
        assert until(lambda: second.poll(POLL_S), "a record").value() == b"20"


def test_a_pattern_of_the_broker_finds_topics(bootstrap: str, group: str) -> None:
    topics = [create_topic(bootstrap, 2, name=f"{group}-{name}") for name in ("eu", "us", "other")]
    with member(bootstrap, group) as consumer:
        consumer.subscribe([f"^{group}-(eu|us)$"])
        share = until_shares([consumer], [4])[0]
    assert {topic for topic, _ in share} == set(topics[:2])


def test_a_static_member_returns_to_its_partitions(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, PARTITIONS)
    with ExitStack() as others:
        stays = others.enter_context(member(bootstrap, group, **{"group.instance.id": "a"}))
        stays.subscribe([topic])
        with member(bootstrap, group, **{"group.instance.id": "b"}) as leaves:
            leaves.subscribe([topic])
            share = until_shares([stays, leaves], [3, 3])[1]
        with member(bootstrap, group, **{"group.instance.id": "b"}) as returned:
            returned.subscribe([topic])
            assert until_shares([stays, returned], [3, 3])[1] == share


def test_the_admin_client_describes_and_deletes_the_group(bootstrap: str, group: str, admin: AdminClient) -> None:
    topic = create_topic(bootstrap, 2)
    with member(bootstrap, group, **{"client.id": "reader"}) as consumer:
        consumer.subscribe([topic])
        until_shares([consumer], [2])
        description = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
        assert description.type == ConsumerGroupType.CONSUMER
        assert description.state == ConsumerGroupState.STABLE
        assert description.partition_assignor == "uniform"
        assert [each.client_id for each in description.members] == ["reader"]
        listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(PATIENCE_S)
        assert group in {each.group_id for each in listed.valid}
    until(
        lambda: admin.describe_consumer_groups([group])[group].result(PATIENCE_S).state == ConsumerGroupState.EMPTY,
        "an empty group",
    )
    admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
