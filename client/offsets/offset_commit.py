"""OffsetCommit, key 8: commit offsets of a group.

Laws
    A commit has the membership of its call: after a rebalance it is refused, and never sent with the new generation.
    Topics are named by their ids if all ids are known (KIP-848, v10), because a recreated topic is another topic. A
    commit for a topic that the metadata do not have any more is not tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rota.client.network.cluster import Cluster
from rota.client.network.targets import Coordinator
from rota.client.offsets.offset_errors import Codes, commit_refused
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rota.protocol.wire import UUID_ZERO

TOPIC_NAME_VERSION_MAX: Final = 9  # the last version that names topics by their names


def topic_ids(cluster: Cluster, offsets: Iterable[TopicPartition]) -> dict[str, bytes]:
    """Return the ids of the topics that the metadata know by now, by name; zero for the others."""
    return {
        topic: cluster.metadata.topic_id(topic) or UUID_ZERO for topic in {partition.topic for partition in offsets}
    }


async def commit(
    cluster: Cluster,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    timeout_ms: int | None = None,
    ids: Mapping[str, bytes] | None = None,
) -> None:
    """Commit the offsets; retries until `timeout_ms` (default_api_timeout_ms) has passed. `ids`: the `topic_ids` of the
    time to which the offsets belong, by default now. Raises CommitFailed, RebalanceInProgress, FencedInstance,
    BrokerError, TimedOut."""
    if not offsets:
        return
    ids = topic_ids(cluster, offsets) if ids is None else ids
    names = {topic_id: name for name, topic_id in ids.items()}

    def retried_codes(response: OffsetCommitResponse) -> Iterator[int]:
        for partition, code in _commit_codes(response, names).items():
            topic = "" if partition is None else partition.topic
            if code != ErrorCode.UNKNOWN_TOPIC_ID or cluster.metadata.has_topic(topic, ids.get(topic)):
                yield code

    response = await cluster.send_request_until(
        Coordinator(group.group_id),
        _commit_request(group, offsets, ids),
        retried_codes,
        what=f"committing offsets of group {group.group_id}",
        timeout_ms=timeout_ms,
        version_max=None if UUID_ZERO not in names else TOPIC_NAME_VERSION_MAX,
    )
    refused = {partition: code for partition, code in _commit_codes(response, names).items() if code}
    if refused:
        raise commit_refused(group, offsets, refused)


def _commit_request(
    group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], ids: Mapping[str, bytes]
) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for partition, at in offsets.items():
        request_partition = OffsetCommitRequestPartition(
            partition_index=partition.partition,
            committed_offset=at.offset,
            committed_leader_epoch=at.leader_epoch,
            committed_metadata=at.metadata,
        )
        topics.setdefault(partition.topic, []).append(request_partition)
    return OffsetCommitRequest(
        group_id=group.group_id,
        generation_id_or_member_epoch=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=tuple(
            OffsetCommitRequestTopic(name=name, topic_id=ids[name], partitions=tuple(partitions))
            for name, partitions in topics.items()
        ),
    )


def _commit_codes(response: OffsetCommitResponse, names: Mapping[bytes, str]) -> Codes:
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
