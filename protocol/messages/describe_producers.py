"""DescribeProducers, key 61, version 0.

v0 flexible from the start (KIP-664)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, Int64, String, wire, wired


@wired
class TopicRequest:
    name: str = wire(String)
    partition_indexes: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class DescribeProducersRequest:
    """Ask for the active producers of partitions."""

    KEY, VERSIONS, FLEXIBLE = 61, range(1), 0

    topics: tuple[TopicRequest, ...] = wire(Array(TopicRequest), default=())


@wired
class ProducerState:
    """`last_timestamp` in ms since the epoch; -1 stands for an unknown epoch, sequence or offset."""

    producer_id: int = wire(Int64)
    producer_epoch: int = wire(Int32)
    last_sequence: int = wire(Int32, default=-1)
    last_timestamp: int = wire(Int64, default=-1)
    coordinator_epoch: int = wire(Int32)
    current_txn_start_offset: int = wire(Int64, default=-1)


@wired
class PartitionResponse:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    active_producers: tuple[ProducerState, ...] = wire(Array(ProducerState), default=())


@wired
class TopicResponse:
    name: str = wire(String)
    partitions: tuple[PartitionResponse, ...] = wire(Array(PartitionResponse), default=())


@wired
class DescribeProducersResponse:
    """The producers that the leader of each partition knows."""

    KEY, VERSIONS, FLEXIBLE = 61, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    topics: tuple[TopicResponse, ...] = wire(Array(TopicResponse), default=())
