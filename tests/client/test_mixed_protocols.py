"""Members of Rota's own client, of both protocols in one group, on a live broker."""

from __future__ import annotations

import pytest
from tests.client.member_kit import Reader, all_owned, readers, settled, until
from tests.client.test_epoch_members import GROUP_CONFIGS
from tests.interop.kit import create_topic

from rota.client.admin.admin import Admin
from rota.client.admin.configs import ConfigResource, ResourceType
from rota.client.config import AdminConfig
from rota.client.types import TopicPartition

PARTITIONS = 6


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
