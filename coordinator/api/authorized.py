"""What a client may do, as Kafka answers where no authorizer is configured: everything that the resource knows.

A set of operations is an int32 with bit n for the operation of ACL code n (KIP-430).
"""

from __future__ import annotations

from typing import Final

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12

NOT_ASKED: Final = -(1 << 31)


def bits(*operations: int) -> int:
    """The set as the wire has it."""
    return sum(1 << operation for operation in operations)


TOPIC: Final = bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER: Final = bits(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)
