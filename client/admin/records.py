"""DeleteRecords (KIP-107): delete the records before an offset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rota.client.admin.call_results import CallResults, ErrorContext, KeyResult, SentRequest
from rota.client.admin.partition_lookup import find_leaders
from rota.client.admin.requests import Deadline, request_each_broker
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Leader
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

REMEDIES: Final = {
    ErrorCode.OFFSET_OUT_OF_RANGE: "The offset is beyond the end of the log; -1 stands for all records.",
    ErrorCode.POLICY_VIOLATION: "The topic is compacted: its cleanup.policy has to have delete.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check topic and partition against describe_topics().",
}


async def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Delete the records before each offset (-1: the high watermark). Returns the new log start offset of each
    partition. Raises AdminFailed."""
    results = CallResults[TopicPartition, int](
        "deleting records", 21, before, lambda key: ErrorContext(*key), remedies=REMEDIES
    )
    leaders = await find_leaders(cluster, results, deadline)

    async def locate(partition: TopicPartition) -> int | None:
        return leaders.get(partition)

    def build(keys: Sequence[TopicPartition]) -> DeleteRecordsRequest:
        topics: dict[str, list[DeleteRecordsPartition]] = {}
        for key in keys:
            partition = DeleteRecordsPartition(partition_index=key.partition, offset=before[key])
            topics.setdefault(key.topic, []).append(partition)
        requested = tuple(
            DeleteRecordsTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items()
        )
        return DeleteRecordsRequest(topics=requested, timeout_ms=deadline.broker_timeout_ms)

    await request_each_broker(cluster, locate, Leader, results, build, _read, deadline)
    return results.all_or_raise()


def _read(_: SentRequest[TopicPartition], answer: DeleteRecordsResponse) -> Iterable[KeyResult[TopicPartition, int]]:
    for topic in answer.topics:
        for result in topic.partitions:
            yield KeyResult(TopicPartition(topic.name, result.partition_index), result.error_code, result.low_watermark)
