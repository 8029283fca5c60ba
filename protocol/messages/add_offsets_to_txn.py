"""AddOffsetsToTxn, key 25, versions 0-4.

v1 as v0 · v2 PRODUCER_FENCED · v3 flexible · v4 TRANSACTION_ABORTABLE (KIP-890)
"""

from __future__ import annotations

from rota.protocol.wire import Int16, Int32, Int64, String, wire, wired


@wired
class AddOffsetsToTxnRequest:
    """Add the offsets partition of a group to a transaction."""

    KEY, VERSIONS, FLEXIBLE = 25, range(5), 3

    transactional_id: str = wire(String)
    producer_id: int = wire(Int64)
    producer_epoch: int = wire(Int16)
    group_id: str = wire(String)


@wired
class AddOffsetsToTxnResponse:
    """Whether the offsets partition was added."""

    KEY, VERSIONS, FLEXIBLE = 25, range(5), 3

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
