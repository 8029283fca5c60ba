"""Which partitions exist, and their leaders."""

from __future__ import annotations

import pytest
from tests.unit.client.admin.conftest import Pair

from rota.client.admin.call_results import CallResults, ErrorContext
from rota.client.admin.partition_lookup import find_leaders, resolve_partitions
from rota.client.admin.requests import Deadline
from rota.client.errors import AdminFailed, UnknownTopic
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition

FIRST, SECOND, THIRD = (TopicPartition("a", number) for number in range(3))
ELSEWHERE = TopicPartition("nowhere", 0)


async def test_a_partition_that_does_not_exist_fails_at_once(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [1, -1]}
    leaders = CallResults[TopicPartition, int](
        "looking", 21, (FIRST, SECOND, THIRD, ELSEWHERE), lambda key: ErrorContext(*key)
    )
    assert await find_leaders(cluster, leaders, deadline) == {FIRST: 1}
    assert leaders.pending() == (FIRST, SECOND)  # the second has no leader at the moment
    assert {item: type(error) for item, error in leaders.failed.items()} == {
        THIRD: UnknownTopic,
        ELSEWHERE: UnknownTopic,
    }


async def test_a_topic_resolves_to_all_its_partitions(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [0, 0], "b": [0, 0, 0]}
    answer = await resolve_partitions(cluster, ["a", TopicPartition("b", 1), FIRST], deadline)
    assert answer == (FIRST, SECOND, TopicPartition("b", 1))
    for unknown in ("nowhere", ELSEWHERE, THIRD):
        with pytest.raises(AdminFailed, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await resolve_partitions(cluster, ["b", unknown], deadline)
