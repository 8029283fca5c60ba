"""The replica that a consumer should read from: one in its own rack, if that has what it wants (KIP-392). Pure.

Law
    F19 A follower that has deleted the record already, by its own retention, is not read from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition

LEADER: Final = -1  # read from the leader


def read_replica_of(racks: Mapping[int, str | None], client_rack: str, partition: Partition, offset: int) -> int:
    """Return the most caught-up replica in that rack that has the record at `offset`; LEADER if there is none.

    `racks` has the live brokers. As Kafka's RackAwareReplicaSelector does, the leader is preferred in its own rack.
    """
    state = partition.state
    if racks.get(state.broker_id) == client_rack:
        return LEADER
    best, best_end = LEADER, offset
    for replica in state.replicas:
        fetched = state.fetch_state(replica)
        if fetched is None or replica not in state.isr or racks.get(replica) != client_rack:
            continue
        if fetched.log_start_offset <= offset and fetched.log_end_offset >= best_end:
            best, best_end = replica, fetched.log_end_offset + 1
    return best
