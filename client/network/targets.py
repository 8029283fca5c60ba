"""Whom a request is for."""

from __future__ import annotations

from dataclasses import dataclass

from rota.client.types import TopicPartition


@dataclass(frozen=True, slots=True)
class AnyNode:
    """Whoever has least to do."""


@dataclass(frozen=True, slots=True)
class Node:
    """This broker."""

    id: int


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller; any broker where brokers pass it on."""


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group."""

    group: str


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition."""

    partition: TopicPartition


Target = AnyNode | Node | Controller | Coordinator | Leader
