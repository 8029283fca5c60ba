"""AddPartitionsToTxn, key 24, versions 0-5.

v1 as v0 · v2 PRODUCER_FENCED · v3 flexible · v4 several transactions, verification only; for brokers (KIP-890)
v5 TRANSACTION_ABORTABLE (KIP-890)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int16, Int32, Int64, String, wire, wired


@wired
class AddPartitionsToTxnTopic:
    name: str = wire(String)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class AddPartitionsToTxnTransaction:
    """`verify_only`: check whether the partitions are in the transaction, and add none."""

    transactional_id: str = wire(String)
    producer_id: int = wire(Int64)
    producer_epoch: int = wire(Int16)
    verify_only: bool = wire(Bool, default=False)
    topics: tuple[AddPartitionsToTxnTopic, ...] = wire(Array(AddPartitionsToTxnTopic), default=())


@wired
class AddPartitionsToTxnRequest:
    """Add partitions to transactions: to one before v4 (clients), to several since v4 (brokers)."""

    KEY, VERSIONS, FLEXIBLE = 24, range(6), 3

    transactions: tuple[AddPartitionsToTxnTransaction, ...] = wire(
        Array(AddPartitionsToTxnTransaction), since=4, default=()
    )
    v3_and_below_transactional_id: str = wire(String, until=3, default="")
    v3_and_below_producer_id: int = wire(Int64, until=3, default=0)
    v3_and_below_producer_epoch: int = wire(Int16, until=3, default=0)
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = wire(Array(AddPartitionsToTxnTopic), until=3, default=())


@wired
class AddPartitionsToTxnPartitionResult:
    partition_index: int = wire(Int32)
    partition_error_code: int = wire(Int16, default=0)


@wired
class AddPartitionsToTxnTopicResult:
    name: str = wire(String)
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = wire(
        Array(AddPartitionsToTxnPartitionResult), default=()
    )


@wired
class AddPartitionsToTxnResult:
    transactional_id: str = wire(String)
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = wire(Array(AddPartitionsToTxnTopicResult), default=())


@wired
class AddPartitionsToTxnResponse:
    """One result for each partition; `error_code` of the whole request since v4."""

    KEY, VERSIONS, FLEXIBLE = 24, range(6), 3

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, since=4, default=0)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = wire(
        Array(AddPartitionsToTxnResult), since=4, default=()
    )
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = wire(
        Array(AddPartitionsToTxnTopicResult), until=3, default=()
    )
