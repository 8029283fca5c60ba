"""Builds a Produce request from batches, assigns the parts of its response to the batches, and builds the topics of
TxnOffsetCommit and AddPartitionsToTxn. Pure.

Laws
    A request names its topics by id (v13) if all ids are known, otherwise all by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rota.client.producer.batch import Batch
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from rota.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rota.protocol.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic

NAMES_VERSION_MAX: Final = 12
ADDED_BY_CLIENT_VERSION_MAX: Final = 11  # since v12 the brokers add partitions to a transaction (KIP-890)

TopicIds = Callable[[str], bytes | None]
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def request(
    batches: Sequence[Batch],
    acks: int,
    timeout_ms: int,
    version: int,
    id_of: TopicIds,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Return a request with one batch per partition. `version`: the newest that the broker and the transaction take."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for batch in batches:
        topic, partition = batch.queue.partition
        topics.setdefault(topic, []).append(PartitionProduceData(index=partition, records=batch.raw))
    ids = {topic: id_of(topic) for topic in topics} if version > NAMES_VERSION_MAX else {}
    by_id = bool(ids) and all(ids.values())
    data = tuple(
        TopicProduceData(topic_id=ids[topic] or b"", partition_data=tuple(parts))
        if by_id
        else TopicProduceData(name=topic, partition_data=tuple(parts))
        for topic, parts in topics.items()
    )
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=data)


def version_max(request: ProduceRequest) -> int | None:
    """Return the newest version that has the fields of the request; None: any."""
    return NAMES_VERSION_MAX if any(topic.name for topic in request.topic_data) else None


def answers(
    batches: Sequence[Batch],
    request: ProduceRequest,
    answer: ProduceResponse,
    id_of: Callable[[str], bytes | None],
) -> Iterator[tuple[Batch, PartitionProduceResponse | None]]:
    """Yield each batch with its part of the response; None if the response does not have it.

    `id_of` returns the present id of a topic. The leader of another topic of that name is removed from the response.
    """
    found = {
        (topic.name or topic.topic_id, response.index): response
        for topic in answer.responses
        for response in topic.partition_responses
    }
    names = list(dict.fromkeys(batch.queue.partition.topic for batch in batches))  # in the order of the request
    keys = {name: topic.name or topic.topic_id for name, topic in zip(names, request.topic_data, strict=True)}
    for batch in batches:
        topic, partition = batch.queue.partition
        key = keys[topic]
        part = found.get((key, partition))
        if part is not None and part.current_leader is not None and isinstance(key, bytes) and key != id_of(topic):
            part = replace(part, current_leader=None)
        yield batch, part


def offset_topics(offsets: Offsets) -> tuple[TxnOffsetCommitRequestTopic, ...]:
    """Return the offsets as TxnOffsetCommit has them: by topic."""
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), at in offsets.items():
        topics.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=at.offset,
                committed_leader_epoch=at.leader_epoch,
                committed_metadata=at.metadata,
            )
        )
    return tuple(TxnOffsetCommitRequestTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items())


def added_topics(partitions: Iterable[TopicPartition]) -> tuple[AddPartitionsToTxnTopic, ...]:
    """Return the partitions as AddPartitionsToTxn has them: by topic."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return tuple(AddPartitionsToTxnTopic(name=name, partitions=tuple(numbers)) for name, numbers in topics.items())
