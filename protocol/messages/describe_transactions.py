"""DescribeTransactions, key 65, version 0.

v0 flexible (KIP-664)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, Int64, String, wire, wired


@wired
class DescribeTransactionsRequest:
    """Ask for the state of transactional ids."""

    KEY, VERSIONS, FLEXIBLE = 65, range(1), 0

    transactional_ids: tuple[str, ...] = wire(Array(String), default=())


@wired
class TopicData:
    topic: str = wire(String)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class TransactionState:
    """`topics`: the partitions of the open transaction; while it ends, those whose marker is not written yet."""

    error_code: int = wire(Int16, default=0)
    transactional_id: str = wire(String)
    transaction_state: str = wire(String, default="")
    transaction_timeout_ms: int = wire(Int32, default=0)
    transaction_start_time_ms: int = wire(Int64, default=0)
    producer_id: int = wire(Int64, default=0)
    producer_epoch: int = wire(Int16, default=0)
    topics: tuple[TopicData, ...] = wire(Array(TopicData), default=())


@wired
class DescribeTransactionsResponse:
    """One state for each transactional id."""

    KEY, VERSIONS, FLEXIBLE = 65, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    transaction_states: tuple[TransactionState, ...] = wire(Array(TransactionState), default=())
