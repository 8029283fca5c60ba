"""What exists, and who leads it."""

from __future__ import annotations

import pytest
from tests.unit.client.admin.conftest import Pair

from rota.client.admin.asking import Deadline
from rota.client.admin.outcomes import Outcomes, Place
from rota.client.admin.places import leaders_of, partitions_of
from rota.client.errors import AdminFailed, UnknownTopic
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition

FIRST, SECOND, THIRD = (TopicPartition("a", number) for number in range(3))
ELSEWHERE = TopicPartition("nowhere", 0)


async def test_what_does_not_exist_fails_at_once(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [1, -1]}
    asked = Outcomes[TopicPartition, int]("looking", 21, (FIRST, SECOND, THIRD, ELSEWHERE), lambda key: Place(*key))
    assert await leaders_of(cluster, asked, deadline) == {FIRST: 1}
    assert asked.open() == (FIRST, SECOND)  # the second has no leader at the moment
    assert {one: type(error) for one, error in asked.failed.items()} == {THIRD: UnknownTopic, ELSEWHERE: UnknownTopic}


async def test_topics_stand_for_all_their_partitions(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [0, 0], "b": [0, 0, 0]}
    told = await partitions_of(cluster, ["a", TopicPartition("b", 1), FIRST], deadline)
    assert told == (FIRST, SECOND, TopicPartition("b", 1))
    for unknown in ("nowhere", ELSEWHERE, THIRD):
        with pytest.raises(AdminFailed, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await partitions_of(cluster, ["b", unknown], deadline)
