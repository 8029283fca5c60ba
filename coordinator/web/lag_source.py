"""Where lags come from: the group's coordinator, and the leaders of its partitions, this broker or others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rota.coordinator.observe.lag import Committed, GroupOffsets, Key
from rota.coordinator.web.broker_requests import ApiError, BrokerRequests, check
from rota.coordinator.web.offsets import committed, ends
from rota.protocol.constructs import DecodeError
from rota.protocol.consumer_protocol import Assignment, TopicPartition, decode_assignment, encode_assignment
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from rota.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsRequest
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rota.protocol.records.unread import unread_time_ms

DESCRIBE_VERSION: Final = 5
CONSUMER_VERSION: Final = 0
CONSUMER: Final = "consumer"
FETCH_VERSION: Final = 12
FETCH_BYTES_MAX: Final = 8 * 1024 * 1024  # of one leader's answer: partitions beyond it have no age this time
PARTITION_BYTES_MAX: Final = 1024  # a first batch that is larger comes whole, or its head
DEAD: Final = "Dead"


class LagSource:
    """The Kafka requests that read the offsets for a lag."""

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests

    async def offsets(self, group_id: str) -> GroupOffsets:
        """Return state, offsets and owners of a group. Raises ApiError."""
        described, offsets = await asyncio.gather(
            describe(self._requests, group_id), committed(self._requests, group_id)
        )
        owners = {key: member.member_id for member in described.members for key in assigned(member.member_assignment)}
        retained = self._requests.node.groups.retained(group_id)  # empty where another broker coordinates the group
        return GroupOffsets(
            described.group_state,
            {key: retained.get(key, Committed(found.offset)) for key, found in offsets.items()},
            owners,
        )

    async def ends(self, keys: list[Key]) -> Mapping[Key, int]:
        """Return the high watermarks; UNKNOWN where the leader does not say."""
        return await ends(self._requests, keys)

    async def append_times(self, offsets: Mapping[Key, int]) -> Mapping[Key, int]:
        """Fetch the batches with these offsets and return the timestamps of the records there."""
        by_leader: dict[int, dict[str, list[FetchPartition]]] = {}
        topics = self._requests.node.topics
        for (topic, index), offset in offsets.items():
            state = topics.partition(topic, index)
            if state is not None and state.leader in topics.brokers:
                fetch = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES_MAX)
                by_leader.setdefault(state.leader, {}).setdefault(topic, []).append(fetch)
        answers = await asyncio.gather(
            *(self._requests.send_request(leader, _fetch(each), FETCH_VERSION) for leader, each in by_leader.items()),
            return_exceptions=True,
        )
        found: dict[Key, int] = {}
        for answer in answers:
            if isinstance(answer, BaseException):
                if not isinstance(answer, ApiError):
                    raise answer
            else:
                for key, data in _batches(answer):
                    time_ms = unread_time_ms(data, offsets[key])
                    if time_ms is not None:
                        found[key] = time_ms
                    await asyncio.sleep(0)  # a batch takes a few ms
        return found


def _fetch(topics: Mapping[str, list[FetchPartition]]) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES_MAX,
        topics=tuple(FetchTopic(topic=topic, partitions=tuple(each)) for topic, each in topics.items()),
    )


def _batches(answer: Any) -> Iterator[tuple[Key, bytes]]:
    for topic in answer.responses:
        for partition in topic.partitions:
            if not partition.error_code:
                yield (topic.topic, partition.partition_index), bytes(partition.records or b"")


async def describe(requests: BrokerRequests, group_id: str) -> Any:
    """Return a group of either protocol as DescribeGroups has it. Raises ApiError, for an unknown one with 404."""
    answer = await requests.send_request_to_coordinator(
        group_id, DescribeGroupsRequest(groups=(group_id,)), DESCRIBE_VERSION
    )
    (described,) = answer.groups
    check(described.error_code, f"group {group_id!r}")
    return described if described.group_state != DEAD else await _describe_consumer(requests, group_id)


async def _describe_consumer(requests: BrokerRequests, group_id: str) -> DescribedGroup:
    request = ConsumerGroupDescribeRequest(group_ids=(group_id,))
    (described,) = (await requests.send_request_to_coordinator(group_id, request, CONSUMER_VERSION)).groups
    if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise ApiError(404, f"there is no group {group_id!r}")
    check(described.error_code, f"group {group_id!r}")
    return DescribedGroup(
        group_id=group_id,
        group_state=described.group_state,
        protocol_type=CONSUMER,
        protocol_data=described.assignor_name,
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"",
                member_assignment=encode_assignment(
                    Assignment(
                        assigned_partitions=tuple(
                            TopicPartition(topic=topic.topic_name, partitions=topic.partitions)
                            for topic in member.assignment.topic_partitions
                        )
                    )
                ),
            )
            for member in described.members
        ),
    )


def assigned(assignment: bytes) -> list[Key]:
    """Return the partitions of an assignment; none when it is not the consumer protocol's."""
    if not assignment:
        return []
    try:
        decoded = decode_assignment(assignment)
    except DecodeError:
        return []
    return [(each.topic, index) for each in decoded.assigned_partitions for index in each.partitions]
