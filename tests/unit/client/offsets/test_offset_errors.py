"""What the codes of a commit are raised as."""

from __future__ import annotations

import pytest

from rota.client.errors import BrokerError, CommitFailed, FencedInstance, KafkaError, RebalanceInProgress, UnknownTopic
from rota.client.offsets.offset_errors import commit_refused
from rota.client.offsets.offset_fetch import fetch_refused
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
GROUP = GroupMetadata("tellers", 7, "teller-1", "one")
OFFSETS = {FIRST: OffsetAndMetadata(1), SECOND: OffsetAndMetadata(2, "note")}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.ILLEGAL_GENERATION, CommitFailed),
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailed),
        (ErrorCode.GROUP_ID_NOT_FOUND, CommitFailed),
        (ErrorCode.REBALANCE_IN_PROGRESS, RebalanceInProgress),
        (ErrorCode.STALE_MEMBER_EPOCH, RebalanceInProgress),
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstance),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, BrokerError),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UnknownTopic),
    ],
)
def test_each_code_has_its_error_which_names_the_partition(code: ErrorCode, kind: type[KafkaError]) -> None:
    error = commit_refused(GROUP, OFFSETS, {FIRST: code, SECOND: 0} if code == 0 else {FIRST: code})
    assert type(error) is kind
    assert "orders-0" in str(error)
    assert "tellers" in str(error)
    cause = error if isinstance(error, BrokerError) else error.__cause__
    assert isinstance(cause, BrokerError)
    assert cause.code is code


def test_a_fenced_membership_has_priority_over_partition_errors() -> None:
    refused = {FIRST: int(ErrorCode.OFFSET_METADATA_TOO_LARGE), SECOND: int(ErrorCode.ILLEGAL_GENERATION)}
    error = commit_refused(GROUP, OFFSETS, refused)
    assert isinstance(error, CommitFailed)
    assert error.partitions == (FIRST, SECOND)
    assert "generation 7" in str(error)


def test_every_partition_that_was_refused_is_named() -> None:
    refused = {FIRST: int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), SECOND: int(ErrorCode.OFFSET_METADATA_TOO_LARGE)}
    error = commit_refused(GROUP, OFFSETS, refused)
    assert isinstance(error, BrokerError)
    assert error.code is ErrorCode.OFFSET_METADATA_TOO_LARGE  # asking again would not help
    assert "4 bytes" in str(error)
    assert "orders-0: UNKNOWN_TOPIC_OR_PARTITION" in str(error)


@pytest.mark.parametrize(
    ("code", "partition", "granted"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, FIRST, "READ on the topic"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, None, "READ on the group"),
    ],
)
def test_c13_a_missing_acl_has_its_remedy(code: ErrorCode, partition: TopicPartition | None, granted: str) -> None:
    assert granted in str(commit_refused(GROUP, OFFSETS, {partition: code}))
    assert granted in str(fetch_refused("tellers", {partition: code}))
