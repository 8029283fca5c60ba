"""Records: everything before an offset is deleted (KIP-107)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rota.client.admin.asking import Deadline, settle_where
from rota.client.admin.outcomes import Answer, Asked, Outcomes, Place
from rota.client.admin.places import leaders_of
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
    ErrorCode.OFFSET_OUT_OF_RANGE: "The offset is beyond the end of the log; -1 stands for all that is there.",
    ErrorCode.POLICY_VIOLATION: "The topic is compacted: its cleanup.policy has to have delete.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check topic and partition against describe_topics().",
}


async def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, int]:
    """The log start that each partition has then; -1 as an offset: up to the high watermark. Raises AdminFailed."""
    outcomes = Outcomes[TopicPartition, int]("deleting records", 21, before, lambda key: Place(*key), remedies=REMEDIES)
    leaders = await leaders_of(cluster, outcomes, deadline)

    async def locate(partition: TopicPartition) -> int | None:
        return leaders.get(partition)

    def build(keys: Sequence[TopicPartition]) -> DeleteRecordsRequest:
        topics: dict[str, list[DeleteRecordsPartition]] = {}
        for key in keys:
            one = DeleteRecordsPartition(partition_index=key.partition, offset=before[key])
            topics.setdefault(key.topic, []).append(one)
        named = tuple(DeleteRecordsTopic(name=name, partitions=tuple(ones)) for name, ones in topics.items())
        return DeleteRecordsRequest(topics=named, timeout_ms=deadline.broker_ms)

    await settle_where(cluster, locate, Leader, outcomes, build, _read, deadline)
    return outcomes.results()


def _read(_: Asked[TopicPartition], answer: DeleteRecordsResponse) -> Iterable[Answer[TopicPartition, int]]:
    for topic in answer.topics:
        for one in topic.partitions:
            yield Answer(TopicPartition(topic.name, one.partition_index), one.error_code, one.low_watermark)
