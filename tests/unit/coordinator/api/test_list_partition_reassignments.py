from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.list_partition_reassignments import list_partition_reassignments
from rota.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


@pytest.mark.parametrize("topics", [None, (), (ListPartitionReassignmentsTopics(name="t", partition_indexes=(0, 9)),)])
def test_a_topic_that_stays_is_not_listed(
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None,
) -> None:
    world = World()
    world.topic("t")
    reply = world.serve(list_partition_reassignments, ListPartitionReassignmentsRequest(topics=topics), 0)
    assert (reply.error_code, reply.error_message, reply.topics) == (0, None, ())
