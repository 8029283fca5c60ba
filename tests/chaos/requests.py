"""The requests of the chaos tests, in one version each."""

from __future__ import annotations

from typing import Any

from tests.chaos.line import Line

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rota.protocol.records.batch import headers
from rota.protocol.records.record import Record, read_records, write_batch

NOW_MS = 1_700_000_000_000
FETCH_BYTES_MAX = 64 << 20


async def create_topic(line: Line, name: str = "t", partitions: int = 3) -> bytes:
    """Its id."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = await line.send_request(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
    assert answer.topics[0].error_code == ErrorCode.NONE
    return bytes(answer.topics[0].topic_id)


def commit(group: str, partition: int, offset: int, metadata: str = "") -> OffsetCommitRequest:
    item = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata=metadata)
    return OffsetCommitRequest(group_id=group, topics=(OffsetCommitRequestTopic(name="t", partitions=(item,)),))


async def committed(line: Line, group: str, partition: int) -> tuple[int, str | None]:
    """(offset, metadata) of one partition."""
    topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(partition,)),)
    answer = await line.send_request(OffsetFetchRequest(group_id=group, topics=topics), 7)
    assert answer.error_code == ErrorCode.NONE
    (item,) = answer.topics[0].partitions
    return item.committed_offset, item.metadata


async def producer_id(line: Line) -> int:
    answer = await line.send_request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
    assert answer.error_code == ErrorCode.NONE
    return int(answer.producer_id)


def batch(*values: bytes, producer: int = -1, sequence: int = -1) -> bytes:
    records = [Record(at, NOW_MS, None, value, ()) for at, value in enumerate(values)]
    if producer < 0:
        return write_batch(records)
    return write_batch(records, producer_id=producer, producer_epoch=0, base_sequence=sequence)


def produce(partition: int, records: bytes, topic: str = "t") -> ProduceRequest:
    data = (PartitionProduceData(index=partition, records=records),)
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(TopicProduceData(name=topic, partition_data=data),))


def produced(answer: Any) -> tuple[ErrorCode, int]:
    """(error, base offset)."""
    (item,) = answer.responses[0].partition_responses
    return ErrorCode(item.error_code), item.base_offset


async def records_of(line: Line, partition: int, topic: str = "t") -> dict[int, bytes]:
    """Value by offset, of all that can be read."""
    found: dict[int, bytes] = {}
    offset = 0
    while True:
        request = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES_MAX)
        topics = (FetchTopic(topic=topic, partitions=(request,)),)
        answer = await line.send_request(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 11)
        (item,) = answer.responses[0].partitions
        assert item.error_code == ErrorCode.NONE
        for position, header in headers(item.records or b"", cut=True):
            found |= {record.offset: record.value or b"" for record in read_records(item.records, position)}
            offset = header.next_offset
        if offset >= item.high_watermark:
            return found
