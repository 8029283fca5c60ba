"""Why a change of a topic is refused, with Kafka's error codes and messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rota.coordinator.metadata.placement import PARTITIONS_PER_REQUEST_MAX
from rota.coordinator.metadata.store import BadNode
from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode


def unknown_topic() -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


def unknown_topic_id() -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def topic_exists(name: str) -> Refusal:
    return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def is_changing(name: str) -> Refusal:
    why = f"Topic '{name}' is being changed by another broker; try again."
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, why)


def too_large(error: BadNode) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"The metadata store cannot hold this topic: {error}")


def refuse_counts(partitions: int, replication: int) -> Refusal | None:
    if replication < 1:
        why = "Replication factor must be larger than 0, or -1 to use the default value."
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, why)
    if partitions < 1:
        return Refusal(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        return too_many()
    return None


def too_many() -> Refusal:
    why = f"Unable to perform excessively large batch operation: at most {PARTITIONS_PER_REQUEST_MAX} partitions."
    return Refusal(ErrorCode.POLICY_VIOLATION, why)


def cannot_replicate(refusal: Refusal, replication: int) -> Refusal:
    if refusal.code is not ErrorCode.INVALID_REPLICATION_FACTOR:
        return refusal
    return replace(refusal, message=f"Unable to replicate the partition {replication} time(s): {refusal.message}")


def refuse_growth(name: str, before: int, count: int, assignment: Sequence[Sequence[int]] | None) -> Refusal | None:
    if count == before:
        return Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {before} partition(s).")
    if count < before:
        why = f"The topic {name} currently has {before} partition(s); {count} would not be an increase."
        return Refusal(ErrorCode.INVALID_PARTITIONS, why)
    if count - before > PARTITIONS_PER_REQUEST_MAX:
        return too_many()
    if assignment is not None and len(assignment) != count - before:
        why = f"Attempted to add {count - before} additional partition(s), but only {len(assignment)} assignment(s) "
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why + "were specified.")
    return None
