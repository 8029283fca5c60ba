"""Committed offsets of groups: list, alter, delete.

Laws
    Requests name topics by name, never by id: the caller gives names.
    A partition without a committed offset is None, never an offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rota.client.admin.call_results import UNKNOWN_TOPIC_CODES, CallResults, ErrorContext, KeyResult, SentRequest
from rota.client.admin.groups import coordinator, group_context
from rota.client.admin.requests import Deadline, request_each_broker, request_with_retries
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Coordinator
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

TOPIC_NAMES_VERSION_MAX: Final = 9  # the last version of OffsetCommit and OffsetFetch that names topics by their names
ALL_OFFSETS_VERSION: Final = 2  # of OffsetFetch: the first that can return all offsets of a group
REMEDIES: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has members: stop them, or remove them with remove_members().",
    ErrorCode.REBALANCE_IN_PROGRESS: "The group has members: stop them, or remove them with remove_members().",
    ErrorCode.NON_EMPTY_GROUP: "Stop its members, or remove them with remove_members().",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Members subscribe to this topic: stop them, or remove them.",
    ErrorCode.GROUP_ID_NOT_FOUND: "Check the name against list_groups().",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check topic and partition against describe_topics().",
}
Offsets = dict[TopicPartition, OffsetAndMetadata | None]


async def list_group_offsets(
    cluster: Cluster, groups: Mapping[str, Iterable[TopicPartition] | None], deadline: Deadline
) -> dict[str, Offsets]:
    """Return the committed offsets of each group: of the given partitions (None where nothing is committed), or all of
    them (when the partitions are None). One request holds many groups where the broker supports it (KIP-709). Raises
    AdminFailed."""
    requested = {group: None if given is None else tuple(dict.fromkeys(given)) for group, given in groups.items()}
    results = CallResults[str, Offsets]("reading committed offsets", 9, requested, group_context, remedies=REMEDIES)

    def build(names: Sequence[str]) -> OffsetFetchRequest:
        return _fetch_request({name: requested[name] for name in names})

    def read(sent: SentRequest[str], answer: OffsetFetchResponse) -> Iterable[KeyResult[str, Offsets]]:
        parts: list[tuple[str, Any]] = [(group.group_id, group) for group in answer.groups]
        for name, result in parts or [(sent.keys[0], answer)]:  # before v8 the whole answer is about one group
            by_partition = dict(_each_partition(result.topics))
            worst = next((part.error_code for part in by_partition.values() if part.error_code), 0)
            yield KeyResult(
                name,
                result.error_code or worst,
                dict.fromkeys(requested.get(name) or ()) | _committed_offsets(by_partition),
            )

    await request_each_broker(
        cluster,
        coordinator(cluster, deadline),
        Coordinator,
        results,
        build,
        read,
        deadline,
        version_min=ALL_OFFSETS_VERSION,
        version_max=TOPIC_NAMES_VERSION_MAX,
    )
    return results.all_or_raise()


async def alter_group_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], deadline: Deadline
) -> None:
    """Commit offsets outside of group management: the group must have no members. Raises AdminFailed."""
    results = CallResults[TopicPartition, None](
        "setting offsets", 8, offsets, _of(group), final=UNKNOWN_TOPIC_CODES, remedies=REMEDIES
    )

    def build(keys: Sequence[TopicPartition]) -> OffsetCommitRequest:
        topics = tuple(
            OffsetCommitRequestTopic(
                name=name,
                partitions=tuple(_commit_partition(partition, offsets[partition]) for partition in partitions),
            )
            for name, partitions in _by_topic(keys).items()
        )
        return OffsetCommitRequest(group_id=group, topics=topics)

    if offsets:
        await request_with_retries(
            cluster,
            Coordinator(group),
            results,
            build,
            _read_offset_commit,
            deadline,
            version_max=TOPIC_NAMES_VERSION_MAX,
        )
    results.all_or_raise()


async def delete_group_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition], deadline: Deadline
) -> None:
    """Delete committed offsets of topics that no member subscribes to (KIP-496). Raises AdminFailed."""
    results = CallResults[TopicPartition, None]("deleting offsets", 47, partitions, _of(group), remedies=REMEDIES)

    def build(keys: Sequence[TopicPartition]) -> OffsetDeleteRequest:
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(
                    OffsetDeleteRequestPartition(partition_index=partition.partition) for partition in partitions
                ),
            )
            for name, partitions in _by_topic(keys).items()
        )
        return OffsetDeleteRequest(group_id=group, topics=topics)

    def read(
        sent: SentRequest[TopicPartition], answer: OffsetDeleteResponse
    ) -> Iterable[KeyResult[TopicPartition, None]]:
        for key in sent.keys if answer.error_code else ():
            yield KeyResult(key, answer.error_code, None)
        for key, result in _each_partition(answer.topics):
            yield KeyResult(key, result.error_code, None)

    if results.pending():
        await request_with_retries(cluster, Coordinator(group), results, build, read, deadline)
    results.all_or_raise()


# ---- requests and responses


def _of(group: str) -> Callable[[TopicPartition], ErrorContext]:
    return lambda key: ErrorContext(key.topic, key.partition, group)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        found.setdefault(partition.topic, []).append(partition)
    return found


def _fetch_request(requested: Mapping[str, tuple[TopicPartition, ...] | None]) -> OffsetFetchRequest:
    """Fill the fields of all versions: before v8 a request holds one group only, the first."""
    group, given = next(iter(requested.items()))
    return OffsetFetchRequest(
        group_id=group,
        topics=None if given is None else tuple(OffsetFetchRequestTopic(**topic) for topic in _fetch_topics(given)),
        groups=tuple(
            OffsetFetchRequestGroup(
                group_id=name,
                topics=None
                if partitions is None
                else tuple(OffsetFetchRequestTopics(**topic) for topic in _fetch_topics(partitions)),
            )
            for name, partitions in requested.items()
        ),
    )


def _fetch_topics(partitions: Iterable[TopicPartition]) -> Iterator[dict[str, Any]]:
    for name, in_topic in _by_topic(partitions).items():
        yield {"name": name, "partition_indexes": tuple(partition.partition for partition in in_topic)}


def _each_partition(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    for topic in topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition


def _committed_offsets(by_partition: Mapping[TopicPartition, Any]) -> Offsets:
    return {
        key: OffsetAndMetadata(result.committed_offset, result.metadata or "", result.committed_leader_epoch)
        for key, result in sorted(by_partition.items())
        if result.committed_offset >= 0
    }


def _commit_partition(partition: TopicPartition, at: int | OffsetAndMetadata) -> OffsetCommitRequestPartition:
    given = OffsetAndMetadata(at) if isinstance(at, int) else at
    return OffsetCommitRequestPartition(
        partition_index=partition.partition,
        committed_offset=given.offset,
        committed_leader_epoch=given.leader_epoch,
        committed_metadata=given.metadata,
    )


def _read_offset_commit(
    _: SentRequest[TopicPartition], answer: OffsetCommitResponse
) -> Iterable[KeyResult[TopicPartition, None]]:
    return (KeyResult(key, result.error_code, None) for key, result in _each_partition(answer.topics))
