"""The target of a request: a node, or the node with a role."""

from __future__ import annotations

from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AnyNode:
    """The least loaded broker."""


@dataclass(frozen=True, slots=True)
class Node:
    """This broker."""

    id: int


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller, or any broker if the brokers forward the request."""


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group."""

    group: str


@dataclass(frozen=True, slots=True)
class TransactionCoordinator:
    """The coordinator of a transactional id."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition."""

    partition: TopicPartition


Target = AnyNode | Node | Controller | Coordinator | TransactionCoordinator | Leader
