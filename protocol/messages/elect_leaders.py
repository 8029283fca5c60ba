"""ElectLeaders, key 43, versions 0-2.

v1 unclean elections (KIP-460) · v2 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, String, wire, wired


@wired
class TopicPartitions:
    topic: str = wire(String)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class ElectLeadersRequest:
    """Elect the preferred replica (0) or any live replica (1) as leader. `topic_partitions` None: all partitions."""

    KEY, VERSIONS, FLEXIBLE = 43, range(3), 2

    election_type: int = wire(Int8, since=1, default=0)
    topic_partitions: tuple[TopicPartitions, ...] | None = wire(Array(TopicPartitions), nullable_since=0)
    timeout_ms: int = wire(Int32, default=60000)


@wired
class PartitionResult:
    partition_id: int = wire(Int32)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class ReplicaElectionResult:
    topic: str = wire(String)
    partition_result: tuple[PartitionResult, ...] = wire(Array(PartitionResult), default=())


@wired
class ElectLeadersResponse:
    """One result for each partition."""

    KEY, VERSIONS, FLEXIBLE = 43, range(3), 2

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, since=1, default=0)
    replica_election_results: tuple[ReplicaElectionResult, ...] = wire(Array(ReplicaElectionResult), default=())
