"""The table of access control: which operation on which resource each API needs. Routes put its guard around an API.

The guard of an API has the API's name in `topics`, `groups`, `transactions` or `cluster`. A rule without a guard is
open to all principals, or checked by the API itself: Fetch, whose sessions name partitions that a request does not.

Laws
    AT3 Every API that a broker supports has a rule; an API of a rule with a guard is reached through the guard alone.
    AT4 Without an authorizer no guard is loaded: a request takes the way that it takes without access control.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final

from rota.coordinator.api.access.request import CLUSTER, GROUP, TOPIC, Guard, RequestAccess
from rota.coordinator.api.node import Call, Node
from rota.coordinator.security.operations import Operation, ResourceType
from rota.protocol.dataclass import dataclass

_O = Operation
_TRANSACTION: Final = ResourceType.TRANSACTIONAL_ID
Need = tuple[Operation, ResourceType]


@dataclass(frozen=True, slots=True)
class Rule:
    """`needs` are all operations that the API checks, some for some requests only; `guard` is the file of its guard."""

    needs: tuple[Need, ...]
    guard: str | None


def _topics(*needs: Need) -> Rule:
    return Rule(needs, "topics")


def _groups(*needs: Need) -> Rule:
    return Rule(needs, "groups")


def _transactions(*needs: Need) -> Rule:
    return Rule(needs, "transactions")


def _cluster(*operations: Operation) -> Rule:
    return Rule(tuple((operation, CLUSTER) for operation in operations), "cluster")


_OPEN: Final = Rule((), None)  # to everybody, as in Kafka

ACCESS: Final[dict[int, Rule]] = {
    0: _topics((_O.WRITE, TOPIC), (_O.WRITE, _TRANSACTION)),
    1: Rule(((_O.READ, TOPIC), (_O.CLUSTER_ACTION, CLUSTER)), None),  # in `fetches`
    2: _topics((_O.DESCRIBE, TOPIC)),
    3: _topics((_O.DESCRIBE, TOPIC), (_O.CREATE, TOPIC), (_O.CREATE, CLUSTER), (_O.DESCRIBE, CLUSTER)),
    8: _groups((_O.READ, GROUP), (_O.READ, TOPIC)),
    9: _groups((_O.DESCRIBE, GROUP), (_O.DESCRIBE, TOPIC)),
    10: _groups((_O.DESCRIBE, GROUP), (_O.DESCRIBE, _TRANSACTION), (_O.CLUSTER_ACTION, CLUSTER)),
    11: _groups((_O.READ, GROUP)),
    12: _groups((_O.READ, GROUP)),
    13: _groups((_O.READ, GROUP)),
    14: _groups((_O.READ, GROUP)),
    15: _groups((_O.DESCRIBE, GROUP)),
    16: _groups((_O.DESCRIBE, GROUP), (_O.DESCRIBE, CLUSTER)),
    17: _OPEN,
    18: _OPEN,
    19: _topics((_O.CREATE, TOPIC), (_O.CREATE, CLUSTER), (_O.DESCRIBE_CONFIGS, TOPIC)),
    20: _topics((_O.DELETE, TOPIC), (_O.DELETE, CLUSTER), (_O.DESCRIBE, TOPIC)),
    21: _topics((_O.DELETE, TOPIC)),
    22: Rule(((_O.WRITE, _TRANSACTION), (_O.IDEMPOTENT_WRITE, CLUSTER), (_O.WRITE, TOPIC)), "cluster"),
    23: _topics((_O.DESCRIBE, TOPIC), (_O.CLUSTER_ACTION, CLUSTER)),
    24: _transactions((_O.WRITE, _TRANSACTION), (_O.WRITE, TOPIC), (_O.CLUSTER_ACTION, CLUSTER)),
    25: _transactions((_O.WRITE, _TRANSACTION), (_O.READ, GROUP)),
    26: _transactions((_O.WRITE, _TRANSACTION)),
    27: _cluster(_O.CLUSTER_ACTION, _O.ALTER),
    28: _groups((_O.WRITE, _TRANSACTION), (_O.READ, GROUP), (_O.READ, TOPIC)),
    29: _cluster(_O.DESCRIBE),
    30: _cluster(_O.ALTER),
    31: _cluster(_O.ALTER),
    32: Rule(tuple((_O.DESCRIBE_CONFIGS, kind) for kind in (TOPIC, GROUP, CLUSTER)), "cluster"),
    33: Rule(tuple((_O.ALTER_CONFIGS, kind) for kind in (TOPIC, GROUP, CLUSTER)), "cluster"),
    34: _cluster(_O.ALTER),
    35: _cluster(_O.DESCRIBE),
    36: _OPEN,
    37: _topics((_O.ALTER, TOPIC)),
    38: Rule(((_O.CREATE_TOKENS, ResourceType.USER),), "cluster"),  # for a token of another owner
    39: _OPEN,  # as there are no delegation tokens
    40: _OPEN,
    41: _OPEN,
    42: _groups((_O.DELETE, GROUP)),
    43: _cluster(_O.ALTER),
    44: Rule(tuple((_O.ALTER_CONFIGS, kind) for kind in (TOPIC, GROUP, CLUSTER)), "cluster"),
    45: _cluster(_O.ALTER),
    46: _cluster(_O.DESCRIBE),
    47: _groups((_O.DELETE, GROUP), (_O.READ, TOPIC)),
    48: _cluster(_O.DESCRIBE_CONFIGS),
    49: _cluster(_O.ALTER_CONFIGS),
    50: _cluster(_O.DESCRIBE),
    51: _cluster(_O.ALTER),
    55: _cluster(_O.DESCRIBE),
    57: _cluster(_O.ALTER),
    60: _cluster(_O.DESCRIBE),  # only for the authorized operations: every principal may see the brokers
    61: _topics((_O.READ, TOPIC)),
    64: _cluster(_O.ALTER),
    65: _transactions((_O.DESCRIBE, _TRANSACTION), (_O.DESCRIBE, TOPIC)),
    66: _transactions((_O.DESCRIBE, _TRANSACTION)),
    68: _groups((_O.READ, GROUP), (_O.DESCRIBE, TOPIC)),
    69: _groups((_O.DESCRIBE, GROUP), (_O.DESCRIBE, TOPIC)),
    71: _OPEN,
    72: _OPEN,
    74: _cluster(_O.DESCRIBE_CONFIGS),
    75: _topics((_O.DESCRIBE, TOPIC)),
}  # by API key


def guarded(key: int, name: str, serve: Callable[[Any, Call, Any], Any]) -> Callable[[Any, Call, Any], Any]:
    """Return the API behind its guard. `name` is that of its function. Raises KeyError for an API without a rule."""
    rule = ACCESS[key]
    if rule.guard is None:
        return serve
    guard: Guard = getattr(import_module(f"rota.coordinator.api.access.{rule.guard}"), name)

    def checked(node: Node, call: Call, request: Any) -> Any:
        if node.authorizer is None:
            return serve(node, call, request)
        return guard(RequestAccess(node, node.authorizer, call, name), request, partial(serve, node, call))

    return checked
