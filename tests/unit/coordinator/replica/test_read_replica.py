from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch

from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.read_replica import LEADER, read_replica_of


@pytest.fixture
def leader() -> Partition:
    """Broker 1 with three records; broker 2 has two of them, broker 3 all; broker 4 has all and is out of the ISR."""
    placed = PartitionState(index=0, leader=1, replicas=(1, 2, 3, 4), isr=(1, 2, 3), leader_epoch=0)
    leader = Partition("t", bytes(16), 0, 0, MemoryLog(), broker_id=1, placed=placed, now_ms=NOW_MS)
    leader.append(batch(b"a", b"b", b"c"), NOW_MS)
    for replica, offset in ((2, 2), (3, 3), (4, 3)):
        leader.follower_fetched(replica, offset, NOW_MS)
    return leader


@pytest.mark.parametrize(
    ("racks", "offset", "replica"),
    [
        ({1: "a", 2: "b", 3: "c"}, 0, 2),
        ({1: "b", 2: "b", 3: "b"}, 0, LEADER),
        ({1: "a", 2: "b", 3: "b"}, 0, 3),
        ({1: "a", 2: "b", 3: "c"}, 3, LEADER),
        ({1: "a", 3: "b"}, 3, 3),
        ({1: "a", 2: None, 3: None, 4: "b"}, 0, LEADER),
        ({}, 0, LEADER),
    ],
    ids=["in its rack", "leader is near", "most caught up", "has it not", "at the end", "not in sync", "no racks"],
)
def test_the_replica_that_a_consumer_reads_from(
    leader: Partition, racks: dict[int, str | None], offset: int, replica: int
) -> None:
    assert read_replica_of(racks, "b", leader, offset) == replica


def test_f19_a_replica_that_has_deleted_the_record_already_is_not_read_from(leader: Partition) -> None:
    """Retention runs on each replica. The consumer would be sent back and forth, and read nothing."""
    racks = {1: "a", 2: "b", 3: "b"}
    leader.follower_fetched(3, 3, NOW_MS, log_start_offset=1)
    assert [read_replica_of(racks, "b", leader, offset) for offset in (0, 1)] == [2, 3]
