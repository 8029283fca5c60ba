"""A topic that is full before a test reads it, in batches of one record, so that one fetch does not bring them all."""

from __future__ import annotations

from tests.interop.kit import create_topic, produce

PARTITIONS = 3
EACH = 30


def filled(bootstrap: str) -> str:
    """A topic of three partitions with EACH records, the value being the offset."""
    name = create_topic(bootstrap, PARTITIONS)
    values = [str(at // PARTITIONS).encode() for at in range(EACH * PARTITIONS)]
    produce(bootstrap, name, values, **{"batch.num.messages": 1, "enable.idempotence": True})
    return name
