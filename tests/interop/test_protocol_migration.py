"""Members of the classic and of the consumer protocol in one group, and groups that change their type (KIP-848)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, ConsumerGroupType
from confluent_kafka.admin import AdminClient
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.kit import PATIENCE_S, create_topic, produce, until
from tests.interop.layouts import until_sizes
from tests.interop.members import Member
from tests.interop.test_consumer_protocol import member, owned

from rota.client.admin.admin import Admin
from rota.client.admin.configs import ConfigResource, ResourceType
from rota.client.config import AdminConfig

PARTITIONS = 6
QUICK = {"consumer.heartbeat.interval.ms": "100", "consumer.assignment.interval.ms": "0"}
EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)


@pytest.fixture
def group(bootstrap: str, group: str) -> str:
    """The id of a group in which nothing waits for 5 s."""

    async def configure() -> None:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
            await admin.alter_configs({ConfigResource(ResourceType.GROUP, group): QUICK})

    asyncio.run(configure())
    return group


def until_shared(classic: Sequence[Member], consumers: list[Consumer], sizes: Sequence[int]) -> None:
    """Wait until the members, classic ones first, own as many partitions as `sizes` says, and none is owned twice."""

    def settled() -> bool:
        shares = [each.partitions for each in classic] + [{part for _, part in share} for share in owned(consumers)]
        return [*map(len, shares)] == list(sizes) and len(set().union(*shares)) == sum(sizes)

    until(settled, f"partitions by member: {sizes}")


def kind(admin: AdminClient, group: str) -> ConsumerGroupType:
    listed = admin.list_consumer_groups().result(PATIENCE_S).valid
    return next(found.type for found in listed if found.group_id == group)


@EVERY_CLIENT
def test_a_consumer_member_joins_a_classic_group_and_leaves_it(
    bootstrap: str, admin: AdminClient, join: Join, group: str, client: str
) -> None:
    """Upgrade and downgrade under live classic members, which read on."""
    topic = create_topic(bootstrap, PARTITIONS)
    classic = [join(client, group=group, topics=[topic], auto_commit=True) for _ in range(2)]
    until_sizes(classic, 3, 3)
    assert kind(admin, group) is ConsumerGroupType.CLASSIC
    with member(bootstrap, group) as consumer:
        consumer.subscribe([topic])
        until_shared(classic, [consumer], (2, 2, 2))
        assert kind(admin, group) is ConsumerGroupType.CONSUMER
    until_sizes(classic, 3, 3)
    assert kind(admin, group) is ConsumerGroupType.CLASSIC
    produce(bootstrap, topic, [b"%d" % number for number in range(60)])
    until(lambda: {*classic[0].values, *classic[1].values} == {b"%d" % n for n in range(60)}, "all records")


@EVERY_CLIENT
def test_a_classic_member_joins_a_consumer_group_and_leaves_it(
    bootstrap: str, admin: AdminClient, join: Join, group: str, client: str
) -> None:
    topic = create_topic(bootstrap, PARTITIONS)
    with member(bootstrap, group) as consumer:
        consumer.subscribe([topic])
        until_shared([], [consumer], (6,))
        classic = join(client, group=group, topics=[topic])
        until_shared([classic], [consumer], (3, 3))
        assert kind(admin, group) is ConsumerGroupType.CONSUMER
        classic.close()
        until_shared([], [consumer], (6,))


@EVERY_CLIENT
def test_members_move_to_the_consumer_protocol_one_by_one_and_back(
    bootstrap: str, admin: AdminClient, join: Join, group: str, client: str
) -> None:
    topic = create_topic(bootstrap, PARTITIONS)
    classic = [join(client, group=group, topics=[topic]) for _ in range(3)]
    until_sizes(classic, 2, 2, 2)
    consumers: list[Consumer] = []
    with ExitStack() as open_members:
        for _ in range(3):
            classic.pop(0).close()
            consumers.append(open_members.enter_context(member(bootstrap, group)))
            consumers[-1].subscribe([topic])
            until_shared(classic, consumers, (2, 2, 2))
        assert kind(admin, group) is ConsumerGroupType.CONSUMER
        for _ in range(3):
            consumers.pop(0).close()
            classic.append(join(client, group=group, topics=[topic]))
            until_shared(classic, consumers, (2, 2, 2))
        assert kind(admin, group) is ConsumerGroupType.CLASSIC
