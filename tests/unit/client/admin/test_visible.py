"""When a topic counts as there, when as gone."""

from __future__ import annotations

import pytest

from rota.client.admin.visible import Expected
from rota.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

MINE, OTHER = b"1" * 16, b"2" * 16


def seen(*leaders: int, code: int = 0, topic_id: bytes = MINE) -> MetadataResponseTopic:
    parts = tuple(
        MetadataResponsePartition(partition_index=number, leader_id=leader) for number, leader in enumerate(leaders)
    )
    return MetadataResponseTopic(name="a", error_code=code, topic_id=topic_id, partitions=parts)


@pytest.mark.parametrize(
    ("shown", "there"),
    [
        (seen(0, 1), True),
        (seen(0, 1, 0), True),  # somebody added more
        (seen(0), False),
        (seen(0, -1), False),
        (seen(0, 1, -1), False),
        (seen(code=3), False),
        (seen(0, 1, code=5), False),
        (seen(0, 1, topic_id=OTHER), False),
        (seen(0, 1, topic_id=bytes(16)), True),  # a broker that knows no ids
    ],
)
def test_there_is_all_partitions_with_leaders_under_the_id(shown: MetadataResponseTopic, there: bool) -> None:
    assert Expected(2, MINE, "a").holds(shown) is there


@pytest.mark.parametrize(
    ("shown", "gone"), [(seen(code=3), True), (seen(0), False), (seen(0, topic_id=OTHER), True), (seen(code=5), False)]
)
def test_gone_is_unknown_or_another(shown: MetadataResponseTopic, gone: bool) -> None:
    assert Expected(0, MINE, "a").holds(shown) is gone
