"""Java and franz-go, each with both protocols, in one group (KIP-848's migration), through new partitions and kills."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

import pytest
from confluent_kafka import ConsumerGroupType
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.client.test_epoch_members import GROUP_CONFIGS
from tests.interop.client_suites.kit import Unavailable
from tests.interop.go_member import GoMember, built
from tests.interop.java_kit import JavaMember, PrintingMember, needs_java
from tests.interop.kit import PATIENCE_S, create_topic, produce, until
from tests.interop.test_protocol_migration import kind
from tests.soak import soak_only

from rota.client.admin.admin import Admin
from rota.client.admin.configs import ConfigResource, ResourceType
from rota.client.config import AdminConfig

pytestmark = [*needs_java, soak_only]


def until_shares(members: Sequence[PrintingMember], share: int, count: int) -> None:
    """Wait until each member owns as many partitions, and none is owned twice."""

    def is_settled() -> bool:
        owned = [member.partitions for member in members]
        return [len(part) for part in owned] == [share] * len(members) and len(set().union(*owned)) == count

    until(is_settled, f"{share} partitions each", seconds=2 * PATIENCE_S)


def configure(bootstrap: str, group: str) -> None:
    async def alter() -> None:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
            await admin.alter_configs({ConfigResource(ResourceType.GROUP, group): GROUP_CONFIGS})

    asyncio.run(alter())


def test_java_and_franz_go_of_both_protocols_share_a_group(bootstrap: str, admin: AdminClient, group: str) -> None:
    try:
        program = built()
    except Unavailable as why:
        pytest.skip(str(why))
    configure(bootstrap, group)
    topic = create_topic(bootstrap, 8)
    with ExitStack() as stack:
        members: list[PrintingMember] = [
            JavaMember(bootstrap, group, topic, "CooperativeStickyAssignor"),
            GoMember(program, bootstrap, group, topic, "classic"),
            JavaMember(bootstrap, group, topic, "consumer"),
            GoMember(program, bootstrap, group, topic, "consumer"),
        ]
        for each in members:
            stack.enter_context(each)
        until_shares(members, 2, 8)
        admin.create_partitions([NewPartitions(topic, 12)])[topic].result(PATIENCE_S)
        until_shares(members, 3, 12)
        members.pop(2).kill()  # Java, consumer
        until_shares(members, 4, 12)
        assert kind(admin, group) is ConsumerGroupType.CONSUMER  # by franz-go alone
        members.pop(1).kill()  # franz-go, classic
        until_shares(members, 6, 12)
        produce(bootstrap, topic, [b"%d" % number for number in range(120)])
        expected = {str(number) for number in range(120)}
        until(lambda: set(members[0].values) | set(members[1].values) == expected, "all records")
        members.pop().close()  # the last of the consumer protocol: the group is classic again
        until_shares(members, 12, 12)
        assert kind(admin, group) is ConsumerGroupType.CLASSIC
