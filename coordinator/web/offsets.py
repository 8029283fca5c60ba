"""Offsets of partitions and groups, requested from leaders and coordinators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from rota.coordinator.metadata.topic import Topic
from rota.coordinator.web.broker_requests import ApiError, BrokerRequests, check
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

LATEST, EARLIEST = -1, -2
UNKNOWN: Final = -1
LIST_OFFSETS_VERSION: Final = 7
OFFSET_FETCH_VERSION: Final = 8

Key = tuple[str, int]  # topic, partition


class Committed(NamedTuple):
    """A group's committed offset for one partition."""

    offset: int
    metadata: str


def topic_named(requests: BrokerRequests, name: str) -> Topic:
    """Return a topic. Raises ApiError."""
    topic = requests.node.topics.get(name)
    if topic is None:
        raise ApiError(404, f"there is no topic {name!r}")
    return topic


async def offsets_at(requests: BrokerRequests, times: Mapping[Key, int]) -> dict[Key, int]:
    """Return the offset at a time (ms since the epoch, LATEST or EARLIEST) for each partition.

    UNKNOWN when its leader does not say, or when no record is that young.
    """
    found = dict.fromkeys(times, UNKNOWN)
    by_leader: dict[int, list[Key]] = {}
    for key in times:
        state = requests.node.topics.partition(*key)
        if state is not None and state.leader in requests.node.topics.brokers:
            by_leader.setdefault(state.leader, []).append(key)
    answers = await asyncio.gather(
        *(
            requests.send_request(leader, _list_offsets(keys, times), LIST_OFFSETS_VERSION)
            for leader, keys in by_leader.items()
        ),
        return_exceptions=True,
    )
    for answer in answers:
        if isinstance(answer, ApiError):
            continue
        if isinstance(answer, BaseException):
            raise answer
        for topic in answer.topics:
            for partition in topic.partitions:
                if not partition.error_code:
                    found[topic.name, partition.partition_index] = partition.offset
    return found


def _list_offsets(keys: Iterable[Key], times: Mapping[Key, int]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in keys:
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=index, timestamp=times[topic, index]))
    return ListOffsetsRequest(
        topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(each)) for name, each in topics.items())
    )


async def ends(requests: BrokerRequests, keys: Iterable[Key]) -> dict[Key, int]:
    """Return the high watermark of each partition; UNKNOWN when its leader does not say."""
    return await offsets_at(requests, dict.fromkeys(keys, LATEST))


async def committed(requests: BrokerRequests, group_id: str) -> dict[Key, Committed]:
    """Return the committed offsets of a group. Raises ApiError."""
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))
    answer = await requests.send_request_to_coordinator(group_id, request, OFFSET_FETCH_VERSION)
    (group,) = answer.groups
    check(group.error_code, f"group {group_id!r}")
    return {
        (topic.name, partition.partition_index): Committed(partition.committed_offset, partition.metadata or "")
        for topic in group.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }
