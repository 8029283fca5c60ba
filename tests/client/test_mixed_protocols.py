"""Members of Rota's own client, of both protocols in one group, on a live broker."""

from __future__ import annotations

import pytest
from tests.client.fault_proxy import FaultProxy
from tests.client.member_kit import Reader, all_owned, readers, settled, shares, until
from tests.client.test_epoch_members import GROUP_CONFIGS, HEARTBEAT
from tests.interop.kit import create_topic

from rota.client.admin.admin import Admin
from rota.client.admin.configs import ConfigResource, ResourceType
from rota.client.config import AdminConfig
from rota.client.types import TopicPartition

PARTITIONS = 6
UNSUPPORTED_VERSION = 35


@pytest.mark.parametrize("order", [("classic", "consumer"), ("consumer", "classic")], ids="-then-".join)
async def test_members_move_one_by_one_from_one_protocol_to_the_other(
    bootstrap: str, group: str, order: tuple[str, str]
) -> None:
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.alter_configs({ConfigResource(ResourceType.GROUP, group): GROUP_CONFIGS})
    topic = create_topic(bootstrap, PARTITIONS)
    everything = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    members: list[Reader] = []

    async def until_shared() -> None:
        share = PARTITIONS // len(members)
        await until(
            lambda: (
                [len(each.owned) for each in members] == [share] * len(members)
                and settled(*members)
                and all_owned(*members) == everything
            ),
            f"{share} partitions each",
        )

    async with readers(bootstrap, group) as join:
        for _ in range(2):
            members.append(await join(topic, group_protocol=order[0]))
        await until_shared()
        members.append(await join(topic, group_protocol=order[1]))
        await until_shared()
        for _ in range(2):
            await members.pop(0).close()
            members.append(await join(topic, group_protocol=order[1]))
            await until_shared()


async def test_an_automatic_member_speaks_the_protocol_that_its_coordinator_takes(bootstrap: str, group: str) -> None:
    """EM6. One is refused in the consumer protocol and joins as a classic member; the other one is taken."""
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.alter_configs({ConfigResource(ResourceType.GROUP, group): GROUP_CONFIGS})

        async def kind() -> str:
            return (await admin.list_groups())[group].type

        topic = create_topic(bootstrap, PARTITIONS)
        async with (
            FaultProxy(bootstrap) as proxy,
            readers(proxy.bootstrap, group, group_protocol="auto") as refused,
            readers(bootstrap, group, group_protocol="auto") as join,
        ):
            proxy.refuse(HEARTBEAT, UNSUPPORTED_VERSION)
            first = await refused(topic)
            await until(lambda: len(first.owned) == PARTITIONS and settled(first), "all")
            assert await kind() == "classic"
            second = await join(topic)
            await until(lambda: shares(first, second) == [3, 3] and settled(first, second), "a half each")
            assert await kind() == "consumer"
            assert first.answers("lost") == second.answers("lost") == []
