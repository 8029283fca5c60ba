"""ListTransactions, key 66, versions 0-2.

v0 flexible (KIP-664) · v1 by duration (KIP-994) · v2 by a pattern of transactional ids (KIP-1152)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, Int64, String, wire, wired


@wired
class ListTransactionsRequest:
    """List the transactional ids of this coordinator. An empty filter selects all.

    `duration_filter` in ms: only transactions that run longer; -1 for all. `transactional_id_pattern`: a regular
    expression of RE2's syntax for whole ids; empty or None for all.
    """

    KEY, VERSIONS, FLEXIBLE = 66, range(3), 0

    state_filters: tuple[str, ...] = wire(Array(String), default=())
    producer_id_filters: tuple[int, ...] = wire(Array(Int64), default=())
    duration_filter: int = wire(Int64, since=1, default=-1)
    transactional_id_pattern: str | None = wire(String, since=2, nullable_since=2, default=None)


@wired
class TransactionState:
    transactional_id: str = wire(String)
    producer_id: int = wire(Int64)
    transaction_state: str = wire(String)


@wired
class ListTransactionsResponse:
    """The transactional ids; `unknown_state_filters`: the requested states that do not exist."""

    KEY, VERSIONS, FLEXIBLE = 66, range(3), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    unknown_state_filters: tuple[str, ...] = wire(Array(String), default=())
    transaction_states: tuple[TransactionState, ...] = wire(Array(TransactionState), default=())
