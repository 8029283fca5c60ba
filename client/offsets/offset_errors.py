"""The exceptions for the error codes of OffsetCommit and OffsetFetch. Pure.

Laws
    The error names every refused partition.
    A code that ends the membership has priority over the code of one partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rota.client.errors import (
    GRANT_READ_ON_GROUP,
    GRANT_READ_ON_TOPIC,
    BrokerError,
    CommitFailed,
    FencedInstance,
    KafkaError,
    RebalanceInProgress,
    UnknownTopic,
)
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import OffsetCommitRequest

MEMBERSHIP_OVER: Final = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.STALE_MEMBER_EPOCH,
)
UNKNOWN_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
LARGE_METADATA: Final = "Metadata of {} bytes; a broker takes offset.metadata.max.bytes of them, 4096 unless it is set."
REMEDIES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: GRANT_READ_ON_TOPIC,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: GRANT_READ_ON_GROUP,
    ErrorCode.UNKNOWN_TOPIC_ID: "The topic was deleted, and perhaps created again as another one.",
}
Codes = dict[TopicPartition | None, int]  # None: the code of the whole response


def commit_refused(
    group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], refused: Codes
) -> KafkaError:
    """The error for the codes of an OffsetCommit response."""
    partitions = sorted(partition for partition in refused if partition is not None)
    message = f"offsets of group {group.group_id} for {_listed(partitions)} were not committed"
    member = f"{group.member_id or 'no member id'}, generation {group.generation_id}"
    codes = {ErrorCode.of(code) for code in refused.values()}
    cause = refused_error("committing offsets", group.group_id, refused, offsets)
    over = next((code for code in MEMBERSHIP_OVER if code in codes), None)
    error: KafkaError = cause
    if ErrorCode.FENCED_INSTANCE_ID in codes:
        error = FencedInstance(
            f"{message}: another member has joined with group_instance_id {group.group_instance_id!r}. Two members "
            f"must not have the same one: this consumer has to stop"
        )
    elif over is ErrorCode.STALE_MEMBER_EPOCH and group.generation_id >= 0:  # the member has a newer epoch by now
        error = RebalanceInProgress(f"{message}: the member epoch of {member} is old. Poll, then commit again")
    elif over is not None:
        error = commit_failed(group, partitions, f"{over.name} for member {member}")
    elif ErrorCode.REBALANCE_IN_PROGRESS in codes:
        error = RebalanceInProgress(
            f"{message}: the group is rebalancing. Poll, so that the member joins; then commit again"
        )
    if error is not cause:
        error.__cause__ = cause
    return error


def commit_failed(group: GroupMetadata, partitions: Iterable[TopicPartition], why: str) -> CommitFailed:
    """Return the error for an ended membership, with reason, partitions and remedy. Its cause has the broker's code."""
    listed = sorted(partitions)
    return CommitFailed(
        f"offsets of group {group.group_id} for {_listed(listed)} were not committed: this consumer is no longer part "
        f"of the group's generation ({why}). Its partitions may belong to another member, which reads on from the last "
        f"committed offsets. Poll on, then it joins again; if there were more than max_poll_interval_ms between two "
        f"polls, lower max_poll_records or raise max_poll_interval_ms",
        listed,
    )


def refused_error(
    what: str,
    group_id: str,
    refused: Codes,
    offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
) -> BrokerError:
    """One error for all codes: the first partition in full, the others by name and code."""
    partitions = sorted(partition for partition in refused if partition is not None)
    actions = {partition: error_action(OffsetCommitRequest.KEY, refused[partition]) for partition in partitions}
    first = next((partition for partition in partitions if actions[partition] is ErrorAction.FATAL), None)
    first = first or (partitions[0] if partitions else None)
    code = ErrorCode.of(refused[first])
    remedy = REMEDIES.get(code, "")
    if code is ErrorCode.OFFSET_METADATA_TOO_LARGE and first is not None and offsets is not None:
        remedy = LARGE_METADATA.format(len(offsets[first].metadata.encode()))
    others = [f"{partition}: {ErrorCode.of(refused[partition]).name}" for partition in partitions if partition != first]
    return (UnknownTopic if code in UNKNOWN_TOPIC else BrokerError)(
        code,
        what,
        topic=None if first is None else first.topic,
        partition=None if first is None else first.partition,
        group=group_id,
        remedy=" ".join(filter(None, (remedy, f"Also refused: {', '.join(others)}." if others else ""))),
    )


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
