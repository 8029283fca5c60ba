"""When a topic is visible, and when it is deleted."""

from __future__ import annotations

import pytest

from rota.client.admin.topic_visibility import ExpectedTopic
from rota.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

MINE, OTHER = b"1" * 16, b"2" * 16


def seen(*leaders: int, code: int = 0, topic_id: bytes = MINE) -> MetadataResponseTopic:
    parts = tuple(
        MetadataResponsePartition(partition_index=number, leader_id=leader) for number, leader in enumerate(leaders)
    )
    return MetadataResponseTopic(name="a", error_code=code, topic_id=topic_id, partitions=parts)


@pytest.mark.parametrize(
    ("topic", "is_visible"),
    [
        (seen(0, 1), True),
        (seen(0, 1, 0), True),  # somebody added more
        (seen(0), False),
        (seen(0, -1), False),
        (seen(0, 1, -1), False),
        (seen(code=3), False),
        (seen(0, 1, code=5), False),
        (seen(code=29), True),  # this client may create it, and not see it
        (seen(0, 1, topic_id=OTHER), False),
        (seen(0, 1, topic_id=bytes(16)), True),  # a broker that knows no ids
    ],
)
def test_a_topic_is_visible_with_its_id_and_all_leaders(topic: MetadataResponseTopic, is_visible: bool) -> None:
    assert ExpectedTopic(2, MINE, "a").matches(topic) is is_visible


@pytest.mark.parametrize(
    ("topic", "is_deleted"),
    [
        (seen(code=3), True),
        (seen(0), False),
        (seen(0, topic_id=OTHER), True),
        (seen(code=5), False),
        (seen(code=29), True),
    ],
)
def test_a_topic_is_deleted_when_unknown_or_under_another_id(topic: MetadataResponseTopic, is_deleted: bool) -> None:
    assert ExpectedTopic(0, MINE, "a").matches(topic) is is_deleted
