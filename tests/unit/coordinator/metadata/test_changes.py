from __future__ import annotations

from rota.coordinator.metadata.changes import PartitionsAdded
from rota.coordinator.metadata.topic import PartitionState, Topic


def test_added_partitions_are_those_from_before_on() -> None:
    states = tuple(PartitionState(index=index, leader=1, replicas=(1,), isr=(1,)) for index in range(5))
    match PartitionsAdded(Topic(name="t", topic_id=bytes(16), partitions=states), 3):
        case PartitionsAdded(topic, before):
            assert [state.index for state in topic.partitions[before:]] == [3, 4]
