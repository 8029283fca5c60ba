"""EndTxn, key 26, versions 0-5.

v1 as v0 · v2 PRODUCER_FENCED · v3 flexible · v4 TRANSACTION_ABORTABLE (KIP-890)
v5 the epoch is bumped at each end, producer id and epoch in the response (KIP-890)
"""

from __future__ import annotations

from rota.protocol.wire import Bool, Int16, Int32, Int64, String, wire, wired


@wired
class EndTxnRequest:
    """Commit or abort the open transaction of a transactional id."""

    KEY, VERSIONS, FLEXIBLE = 26, range(6), 3

    transactional_id: str = wire(String)
    producer_id: int = wire(Int64)
    producer_epoch: int = wire(Int16)
    committed: bool = wire(Bool)


@wired
class EndTxnResponse:
    """Producer id and epoch for the next transaction, since v5; -1 with an error."""

    KEY, VERSIONS, FLEXIBLE = 26, range(6), 3

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    producer_id: int = wire(Int64, since=5, default=-1)
    producer_epoch: int = wire(Int16, since=5, default=-1)
