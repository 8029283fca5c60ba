"""The types of resources and the operations on them: Kafka's codes, and which operation exists for which type. Pure.

A set of operations is an int32 with bit n for the operation of code n (KIP-430).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

NOT_REQUESTED: Final = -(1 << 31)  # in the place of a set, when the client did not ask for it


class ResourceType(IntEnum):
    """Kafka's codes. ANY is for filters; UNKNOWN is what a newer client may send."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """Kafka's AclOperation. ANY is for filters, ALL for entries."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


_R, _O = ResourceType, Operation
OPERATIONS: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    _R.TOPIC: (
        _O.READ,
        _O.WRITE,
        _O.CREATE,
        _O.DELETE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
    ),
    _R.GROUP: (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    _R.CLUSTER: (
        _O.CREATE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.CLUSTER_ACTION,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
        _O.IDEMPOTENT_WRITE,
    ),
}  # that exist for a type of resource, in the order of their codes: those of AuthorizedOperations


def bits(operations: Iterable[Operation]) -> int:
    """Return the set as an int32."""
    return sum(1 << operation for operation in operations)


ALL_OPERATIONS: Final = {resource_type: bits(operations) for resource_type, operations in OPERATIONS.items()}
