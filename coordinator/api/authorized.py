"""The operations that a client may perform: all of the resource type's, as in Kafka without an authorizer.

A set of operations is an int32 with bit n for the operation of ACL code n (KIP-430).
"""

from __future__ import annotations

from typing import Final

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12

NOT_REQUESTED: Final = -(1 << 31)


def bits(*operations: int) -> int:
    """Return the set as an int32."""
    return sum(1 << operation for operation in operations)


TOPIC: Final = bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER: Final = bits(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)
