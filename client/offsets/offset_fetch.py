"""OffsetFetch, key 9: read the offsets that a group has committed.

Law
    A partition for which nothing is committed has no offset: None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from rota.client.errors import BrokerError
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Coordinator
from rota.client.offsets.offset_errors import Codes, refused_error
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

TOPIC_NAME_VERSION_MAX: Final = 9  # the last version that names topics by their names
ALL_TOPICS_SINCE: Final = 2  # the first version that can ask for all topics


async def committed(
    cluster: Cluster,
    group: GroupMetadata,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool = True,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Return the committed offset of each partition, None where nothing is committed. `partitions` None: all partitions
    with a committed offset of the group. Raises BrokerError, TimedOut, Unsupported."""
    offsets, refused = await committed_or_refused(
        cluster, group, partitions, require_stable=require_stable, timeout_ms=timeout_ms
    )
    if refused:
        raise fetch_refused(group.group_id, refused)
    return offsets


async def committed_or_refused(
    cluster: Cluster,
    group: GroupMetadata,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool = True,
    timeout_ms: int | None = None,
) -> tuple[dict[TopicPartition, OffsetAndMetadata | None], Codes]:
    """As `committed`, but returns the offsets that were answered beside the codes of the partitions that were refused.
    Raises BrokerError when the group is refused."""
    requested = None if partitions is None else tuple(dict.fromkeys(partitions))
    if requested == ():
        return {}, {}
    response = await cluster.send_request_until(
        Coordinator(group.group_id),
        _fetch_request(group.group_id, requested, require_stable),
        lambda response: _fetch_codes(response).values(),
        what=f"reading committed offsets of group {group.group_id}",
        timeout_ms=timeout_ms,
        version_max=TOPIC_NAME_VERSION_MAX,
        version_min=ALL_TOPICS_SINCE if requested is None else 0,
    )
    refused = {partition: code for partition, code in _fetch_codes(response).items() if code}
    if None in refused:
        raise fetch_refused(group.group_id, refused)
    answered = dict.fromkeys(requested or ()) | _offsets(response)
    return {partition: at for partition, at in answered.items() if partition not in refused}, refused


def fetch_refused(group_id: str, refused: Codes) -> BrokerError:
    """The error for the codes that `committed_or_refused` returns."""
    return refused_error("reading committed offsets", group_id, refused)


def _fetch_request(
    group_id: str, partitions: tuple[TopicPartition, ...] | None, require_stable: bool
) -> OffsetFetchRequest:
    """The request with the fields of versions 0-7 (`topics`) and of versions 8 and later (`groups`)."""
    topics: dict[str, list[int]] = {}
    for partition in partitions or ():
        topics.setdefault(partition.topic, []).append(partition.partition)
    requested = [(name, tuple(indexes)) for name, indexes in topics.items()]
    old = tuple(OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in requested)
    new = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in requested)
    everything = partitions is None
    return OffsetFetchRequest(
        group_id=group_id,
        topics=None if everything else old,
        groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None if everything else new),),
        require_stable=require_stable,
    )


def _fetch_codes(response: OffsetFetchResponse) -> Codes:
    """Error codes by partition; None: that of the group."""
    group_code = response.groups[0].error_code if response.groups else response.error_code
    return {None: group_code} | {partition: data.error_code for partition, data in _partitions(response)}


def _offsets(response: OffsetFetchResponse) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        partition: OffsetAndMetadata(data.committed_offset, data.metadata or "", data.committed_leader_epoch)
        for partition, data in _partitions(response)
        if data.committed_offset >= 0
    }


def _partitions(response: OffsetFetchResponse) -> Iterator[tuple[TopicPartition, Any]]:
    """The partitions of a response of any version."""
    topics: list[Any] = [*response.topics, *(topic for group in response.groups for topic in group.topics)]
    for topic in topics:
        for data in topic.partitions:
            yield TopicPartition(topic.name, data.partition_index), data
