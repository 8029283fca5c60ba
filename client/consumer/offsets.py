"""Offsets: committing, reading what was committed, finding offsets by time, giving positions to partitions.

Laws
    A commit speaks for the membership that it was called with: after a rebalance it is refused, never done in the name
    of the new generation.
    Topics are named by their ids where all of them are known (KIP-848, v10): what was deleted and created again is
    another topic.
    What a broker refuses is told with every partition that it refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rota.client.consumer.listing import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from rota.client.errors import (
    BrokerError,
    CommitFailed,
    FencedInstance,
    KafkaError,
    RebalanceInProgress,
    UnknownTopic,
)
from rota.client.network.cluster import Cluster
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.network.targets import Coordinator
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from rota.protocol.wire import UUID_ZERO

__all__ = ["EARLIEST", "LATEST", "MAX_TIMESTAMP", "commit", "committed", "list_offsets"]

NAMES_UNTIL: Final = 9  # the last version of OffsetCommit and OffsetFetch that names topics by their names
ALL_TOPICS_SINCE: Final = 2  # the first version of OffsetFetch that can ask for everything
MEMBERSHIP_OVER: Final = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.STALE_MEMBER_EPOCH,
)
LARGE_METADATA: Final = "Metadata of {} bytes; a broker takes offset.metadata.max.bytes of them, 4096 unless it is set."
Codes = dict[TopicPartition | None, int]  # None: of the answer as a whole


async def commit(
    cluster: Cluster,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    timeout_ms: int | None = None,
) -> None:
    """OffsetCommit until it worked. Raises CommitFailed, RebalanceInProgress, FencedInstance, BrokerError, TimedOut."""
    if not offsets:
        return
    ids = {one.topic: cluster.metadata.topic_id(one.topic) or UUID_ZERO for one in offsets}
    names = {topic_id: name for name, topic_id in ids.items()}
    answer = await cluster.ask_until(
        Coordinator(group.group_id),
        _commit_request(group, offsets, ids),
        lambda answer: _commit_codes(answer, names).values(),
        what=f"committing offsets of group {group.group_id}",
        timeout_ms=timeout_ms,
        version_max=None if UUID_ZERO not in names else NAMES_UNTIL,
    )
    refused = {one: code for one, code in _commit_codes(answer, names).items() if code}
    if refused:
        raise commit_refused(group, offsets, refused)


async def committed(
    cluster: Cluster,
    group: GroupMetadata,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool = True,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """What the group has committed; None where nothing is. `partitions` None: everything that it has. Raises
    BrokerError, TimedOut, Unsupported."""
    asked = None if partitions is None else tuple(dict.fromkeys(partitions))
    if asked == ():
        return {}
    answer = await cluster.ask_until(
        Coordinator(group.group_id),
        _fetch_request(group.group_id, asked, require_stable),
        lambda answer: _fetch_codes(answer).values(),
        what=f"reading committed offsets of group {group.group_id}",
        timeout_ms=timeout_ms,
        version_max=NAMES_UNTIL,
        version_min=ALL_TOPICS_SINCE if asked is None else 0,
    )
    refused = {one: code for one, code in _fetch_codes(answer).items() if code}
    if refused:
        raise _refused("reading committed offsets", group.group_id, refused)
    return dict.fromkeys(asked or ()) | _known(answer)


def commit_refused(
    group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], refused: Codes
) -> KafkaError:
    """What the codes of a commit are raised as: what ends the membership before what one partition has."""
    partitions = sorted(one for one in refused if one is not None)
    told = f"offsets of group {group.group_id} for {_listed(partitions)} were not committed"
    member = f"{group.member_id or 'no member id'}, generation {group.generation_id}"
    codes = {ErrorCode.of(code) for code in refused.values()}
    cause = _refused("committing offsets", group.group_id, refused, offsets)
    over = next((code for code in MEMBERSHIP_OVER if code in codes), None)
    error: KafkaError = cause
    if ErrorCode.FENCED_INSTANCE_ID in codes:
        error = FencedInstance(
            f"{told}: another member has joined with group_instance_id {group.group_instance_id!r}. Two members must "
            f"not have the same one: this consumer has to stop"
        )
    elif over is not None:
        error = commit_failed(group, partitions, f"{over.name} for member {member}")
    elif ErrorCode.REBALANCE_IN_PROGRESS in codes:
        error = RebalanceInProgress(
            f"{told}: the group is rebalancing. Poll, so that the member joins; then commit again"
        )
    if error is not cause:
        error.__cause__ = cause
    return error


def commit_failed(group: GroupMetadata, partitions: Iterable[TopicPartition], why: str) -> CommitFailed:
    """The membership is over: what happened, which partitions, what to do. The broker's code is in its cause."""
    listed = sorted(partitions)
    return CommitFailed(
        f"offsets of group {group.group_id} for {_listed(listed)} were not committed: this consumer is no longer part "
        f"of the group's generation ({why}). Its partitions may belong to another member, which reads on from the last "
        f"committed offsets. Poll on, then it joins again; if there were more than max_poll_interval_ms between two "
        f"polls, lower max_poll_records or raise max_poll_interval_ms",
        listed,
    )


def _commit_request(
    group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], ids: Mapping[str, bytes]
) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for one, at in offsets.items():
        said = OffsetCommitRequestPartition(
            partition_index=one.partition,
            committed_offset=at.offset,
            committed_leader_epoch=at.leader_epoch,
            committed_metadata=at.metadata,
        )
        topics.setdefault(one.topic, []).append(said)
    return OffsetCommitRequest(
        group_id=group.group_id,
        generation_id_or_member_epoch=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=tuple(
            OffsetCommitRequestTopic(name=name, topic_id=ids[name], partitions=tuple(several))
            for name, several in topics.items()
        ),
    )


def _commit_codes(answer: OffsetCommitResponse, names: Mapping[bytes, str]) -> Codes:
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }


def _fetch_request(
    group_id: str, partitions: tuple[TopicPartition, ...] | None, require_stable: bool
) -> OffsetFetchRequest:
    """In both shapes; the version that is spoken takes its own."""
    topics: dict[str, list[int]] = {}
    for one in partitions or ():
        topics.setdefault(one.topic, []).append(one.partition)
    named = [(name, tuple(several)) for name, several in topics.items()]
    old = tuple(OffsetFetchRequestTopic(name=name, partition_indexes=several) for name, several in named)
    new = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=several) for name, several in named)
    everything = partitions is None
    return OffsetFetchRequest(
        group_id=group_id,
        topics=None if everything else old,
        groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None if everything else new),),
        require_stable=require_stable,
    )


def _fetch_codes(answer: OffsetFetchResponse) -> Codes:
    """By partition; None for the group as a whole."""
    whole = answer.groups[0].error_code if answer.groups else answer.error_code
    return {None: whole} | {partition: one.error_code for partition, one in _parts(answer)}


def _known(answer: OffsetFetchResponse) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        partition: OffsetAndMetadata(one.committed_offset, one.metadata or "", one.committed_leader_epoch)
        for partition, one in _parts(answer)
        if one.committed_offset >= 0
    }


def _parts(answer: OffsetFetchResponse) -> Iterator[tuple[TopicPartition, Any]]:
    """Partition by partition, in whichever shape they came."""
    topics: list[Any] = [*answer.topics, *(topic for group in answer.groups for topic in group.topics)]
    for topic in topics:
        for one in topic.partitions:
            yield TopicPartition(topic.name, one.partition_index), one


def _refused(
    what: str,
    group_id: str,
    refused: Codes,
    offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
) -> BrokerError:
    """One error for all of them: the first in full, the others by name."""
    named = sorted(one for one in refused if one is not None)
    first = next(
        (one for one in named if error_action(OffsetCommitRequest.KEY, refused[one]) is ErrorAction.FATAL), None
    )
    first = first or (named[0] if named else None)
    code = ErrorCode.of(refused[first])
    large = code is ErrorCode.OFFSET_METADATA_TOO_LARGE and first is not None and offsets is not None
    remedy = LARGE_METADATA.format(len(offsets[first].metadata.encode())) if large and offsets and first else ""
    others = [f"{one}: {ErrorCode.of(refused[one]).name}" for one in named if one != first]
    return (UnknownTopic if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else BrokerError)(
        code,
        what,
        topic=None if first is None else first.topic,
        partition=None if first is None else first.partition,
        group=group_id,
        remedy=" ".join(filter(None, (remedy, f"Also refused: {', '.join(others)}." if others else ""))),
    )


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
