from __future__ import annotations

from rota.coordinator.metadata.placement import PARTITIONS_PER_REQUEST_MAX
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.metadata.topic_refusals import cannot_replicate, refuse_counts, refuse_growth
from rota.protocol.errors import ErrorCode


def code(refusal: Refusal | None) -> ErrorCode | None:
    return None if refusal is None else refusal.code


def test_counts_that_a_topic_cannot_have() -> None:
    assert code(refuse_counts(1, 1)) is None
    assert code(refuse_counts(0, 1)) is ErrorCode.INVALID_PARTITIONS
    assert code(refuse_counts(1, 0)) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert code(refuse_counts(PARTITIONS_PER_REQUEST_MAX + 1, 1)) is ErrorCode.POLICY_VIOLATION


def test_growth_that_is_none() -> None:
    assert code(refuse_growth("t", 3, 4, None)) is None
    assert code(refuse_growth("t", 3, 3, None)) is ErrorCode.INVALID_PARTITIONS
    assert code(refuse_growth("t", 3, 2, None)) is ErrorCode.INVALID_PARTITIONS
    assert code(refuse_growth("t", 3, 5, [[1]])) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert code(refuse_growth("t", 3, 4 + PARTITIONS_PER_REQUEST_MAX, None)) is ErrorCode.POLICY_VIOLATION


def test_only_a_wrong_replication_factor_names_the_factor() -> None:
    few = Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, "too few")
    assert cannot_replicate(few, 3).message == "Unable to replicate the partition 3 time(s): too few"
    other = Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "twice")
    assert cannot_replicate(other, 3) == other
