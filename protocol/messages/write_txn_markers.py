"""WriteTxnMarkers, key 27, versions 1-2.

v1 flexible · v2 transaction version (KIP-1228)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String, wire, wired


@wired
class WritableTxnMarkerTopic:
    name: str = wire(String)
    partition_indexes: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class WritableTxnMarker:
    """The end of one producer's transaction: `transaction_result` true for commit, false for abort.

    With `transaction_version` 2 the epoch of the marker is above the epoch of the transaction's records (KIP-890).
    """

    producer_id: int = wire(Int64)
    producer_epoch: int = wire(Int16)
    transaction_result: bool = wire(Bool)
    topics: tuple[WritableTxnMarkerTopic, ...] = wire(Array(WritableTxnMarkerTopic), default=())
    coordinator_epoch: int = wire(Int32)
    transaction_version: int = wire(Int8, since=2, default=0)


@wired
class WriteTxnMarkersRequest:
    """Write the ends of transactions into the partitions that this broker leads. Brokers send it."""

    KEY, VERSIONS, FLEXIBLE = 27, range(1, 3), 1

    markers: tuple[WritableTxnMarker, ...] = wire(Array(WritableTxnMarker), default=())


@wired
class WritableTxnMarkerPartitionResult:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)


@wired
class WritableTxnMarkerTopicResult:
    name: str = wire(String)
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = wire(Array(WritableTxnMarkerPartitionResult), default=())


@wired
class WritableTxnMarkerResult:
    producer_id: int = wire(Int64)
    topics: tuple[WritableTxnMarkerTopicResult, ...] = wire(Array(WritableTxnMarkerTopicResult), default=())


@wired
class WriteTxnMarkersResponse:
    """One result for each partition of each marker."""

    KEY, VERSIONS, FLEXIBLE = 27, range(1, 3), 1

    markers: tuple[WritableTxnMarkerResult, ...] = wire(Array(WritableTxnMarkerResult), default=())
