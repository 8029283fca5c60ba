"""InitProducerId, key 22, versions 0-5.

v1 throttle time · v2 flexible · v3 epoch bump (KIP-360) · v4 PRODUCER_FENCED
v5 TRANSACTION_ABORTABLE (KIP-890). v6 (two-phase commit, KIP-939) is not stable in Kafka 4.3.
"""

from __future__ import annotations

from rota.protocol.wire import Int16, Int32, Int64, String, wire, wired


@wired
class InitProducerIdRequest:
    """Ask for a producer id and epoch; `transactional_id` None: for an idempotent producer without transactions."""

    KEY, VERSIONS, FLEXIBLE = 22, range(6), 2

    transactional_id: str | None = wire(String, nullable_since=0, default=None)
    transaction_timeout_ms: int = wire(Int32)
    producer_id: int = wire(Int64, since=3, default=-1)
    producer_epoch: int = wire(Int16, since=3, default=-1)


@wired
class InitProducerIdResponse:
    """Producer id and epoch, -1 with an error."""

    KEY, VERSIONS, FLEXIBLE = 22, range(6), 2

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    producer_id: int = wire(Int64, default=-1)
    producer_epoch: int = wire(Int16, default=-1)
