"""The rows of the table: each takes a broker's address and gives one figure."""

from __future__ import annotations

import struct
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benchmarks.groups import RETRIES, RETRY_S, find_coordinator, hold, rebalance, settled
from benchmarks.joining import RETRIABLE
from benchmarks.pump import LoadConnection, pump
from benchmarks.wire import Wire, frame
from rota.protocol.compiler import codec
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from rota.protocol.records.record import write_pairs

HEARTBEAT_VERSION, COMMIT_VERSION, PRODUCE_VERSION, FETCH_VERSION = 4, 8, 9, 12
GROUPS = 50


@dataclass(slots=True)
class Settings:
    """What the command line sets."""

    seconds: float = 2.0


settings = Settings()


@dataclass(frozen=True, slots=True)
class Row:
    """`more` says whether more of it is better."""

    name: str
    unit: str
    more: bool
    goal: float  # the ratio to reach, Rota to Kafka
    measure: Callable[[str], float]


def unique(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def create(address: str, topic: str, partitions: int) -> None:
    wire = Wire(address)
    request = CreateTopicsRequest(
        topics=(CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1),), timeout_ms=10_000
    )
    answer = wire.send_request(request, 5, CreateTopicsResponse)
    assert not answer.topics[0].error_code, answer
    wire.close()
    time.sleep(0.3)  # a cluster spreads the news


def delete(address: str, topic: str) -> None:
    """Rounds must not fill the disk."""
    wire = Wire(address)
    answer = wire.send_request(DeleteTopicsRequest(topic_names=(topic,), timeout_ms=10_000), 5, DeleteTopicsResponse)
    assert not answer.responses[0].error_code, answer
    wire.close()


# ---- groups


def heartbeats(conns: int, inflight: int) -> Callable[[str], float]:
    def measure(address: str) -> float:
        lanes: list[LoadConnection] = [LoadConnection([], []) for _ in range(conns)]
        for number in range(GROUPS):
            group = unique("beat")
            for member in settled(find_coordinator(address, group), group, 4):
                lane, correlation = lanes[number % conns], len(lanes[number % conns].frames)
                heartbeat = HeartbeatRequest(
                    group_id=group, generation_id=member.generation, member_id=member.member_id
                )
                assert isinstance(lane.frames, list)
                assert isinstance(lane.replies, list)
                lane.frames.append(frame(heartbeat, HEARTBEAT_VERSION, correlation))
                lane.replies.append(struct.pack(">iibihb", 12, correlation, 0, 0, 0, 0))
        return pump(address, lanes, inflight, settings.seconds).per_s

    return measure


def commits(conns: int, inflight: int, partitions: int) -> Callable[[str], float]:
    def measure(address: str) -> float:
        topic = unique("committed")
        create(address, topic, partitions)
        lanes = []
        for _ in range(conns):
            frames, replies = [], []
            for number in range(GROUPS):
                group = unique("commit")
                commit_until_accepted(address, group, topic, partitions)
                frames.append(frame(commit_request(group, topic, partitions), COMMIT_VERSION, number))
                replies.append(committed_reply(topic, partitions, number))
            lanes.append(LoadConnection(frames, replies))
        return pump(address, lanes, inflight, settings.seconds).per_s

    return measure


def commit_until_accepted(address: str, group: str, topic: str, partitions: int) -> None:
    """Commit once. A coordinator that was just created is still loading, and refuses commits for a while."""
    wire = Wire(find_coordinator(address, group))
    request = commit_request(group, topic, partitions)
    for _ in range(RETRIES):
        answer = wire.send_request(request, COMMIT_VERSION, OffsetCommitResponse)
        codes = {partition.error_code for of_topic in answer.topics for partition in of_topic.partitions}
        if codes == {0}:
            break
        assert codes <= RETRIABLE, codes
        time.sleep(RETRY_S)
    else:
        raise TimeoutError(f"{address} takes no commit of {group}")
    wire.close()


def commit_request(group: str, topic: str, partitions: int) -> OffsetCommitRequest:
    offsets = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata="")
        for index in range(partitions)
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=offsets),),
    )


def committed_reply(topic: str, partitions: int, correlation: int) -> bytes:
    answer = OffsetCommitResponse(
        topics=(
            OffsetCommitResponseTopic(
                name=topic,
                partitions=tuple(OffsetCommitResponsePartition(partition_index=i) for i in range(partitions)),
            ),
        )
    )
    body = struct.pack(">ib", correlation, 0) + codec(OffsetCommitResponse, COMMIT_VERSION).encode(answer)
    return struct.pack(">i", len(body)) + body


def rebalances(count: int, rounds: int = 5) -> Callable[[str], float]:
    def measure(address: str) -> float:
        group = unique("rebalance")
        members = settled(find_coordinator(address, group), group, count)
        took = [rebalance(members, address) for _ in range(rounds)]
        for member in members:
            member.wire.close()
        return median(took) * 1000

    return measure


def held(groups: int) -> Callable[[str], float]:
    return lambda address: hold(find_coordinator(address, "hold"), unique("hold"), groups)


# ---- records


def batch(record_bytes: int, batch_bytes: int) -> tuple[bytes, int]:
    """(a batch of about that size, how many records it has)."""
    count = max(batch_bytes // (record_bytes + 8), 1)
    value = (b"a line of a log that somebody keeps: " * (record_bytes // 37 + 1))[:record_bytes]
    return write_pairs([(None, value)] * count, int(time.time() * 1000)), count


def produce(record_bytes: int, batch_bytes: int, inflight: int = 5) -> Callable[[str], float]:
    """MB of records a second, acks=all, one connection, `inflight` requests of one batch outstanding."""

    def measure(address: str) -> float:
        topic = unique("produced")
        create(address, topic, 1)
        figure = produce_for(address, topic, record_bytes, batch_bytes, inflight, settings.seconds)
        delete(address, topic)
        return figure

    return measure


def produce_for(
    address: str, topic: str, record_bytes: int, batch_bytes: int, inflight: int, seconds: float, partition: int = 0
) -> float:
    records, count = batch(record_bytes, batch_bytes)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=(
            TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=records),)),
        ),
    )
    raw, wire = frame(request, PRODUCE_VERSION), Wire(address)
    began = time.perf_counter()
    sent = done = 0
    while done < sent or time.perf_counter() - began < seconds:
        while sent - done < inflight and time.perf_counter() - began < seconds:
            wire.socket.sendall(raw)
            sent += 1
        answer = wire.receive(ProduceResponse, 0, PRODUCE_VERSION)
        assert not answer.responses[0].partition_responses[0].error_code
        done += 1
    took = time.perf_counter() - began
    wire.close()
    return done * count * record_bytes / took / 1e6


def consume(record_bytes: int, batch_bytes: int, total_bytes: int = 400_000_000) -> Callable[[str], float]:
    """MB of batches a second, fetched from the first offset to the last, 1 MB a partition as consumers ask."""

    def measure(address: str) -> float:
        topic = unique("consumed")
        create(address, topic, 1)
        fill(address, topic, record_bytes, batch_bytes, total_bytes)
        wire = Wire(address, reuses_memory=True)
        figure = read_all(wire, topic)
        wire.close()
        delete(address, topic)
        return figure

    return measure


def read_all(wire: Wire, topic: str) -> float:
    """Read partition 0 from the first offset to the last; return MB of batches a second."""
    end = _fetch(wire, topic, 0, 1)[1]
    offset = got = 0
    began = time.perf_counter()
    while offset < end:
        records, _ = _fetch(wire, topic, offset, 1 << 20)
        got += len(records)
        offset = _next_offset(records)
    return got / (time.perf_counter() - began) / 1e6


def fill(address: str, topic: str, record_bytes: int, batch_bytes: int, total_bytes: int) -> None:
    records, _ = batch(record_bytes, batch_bytes)
    request = ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        topic_data=(TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),)),),
    )
    wire = Wire(address)
    for _ in range(total_bytes // len(records)):
        wire.send_request(request, PRODUCE_VERSION, ProduceResponse)
    wire.close()


def _fetch(wire: Wire, topic: str, offset: int, bytes_max: int) -> tuple[bytes | memoryview, int]:
    """(records, high watermark)."""
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=(FetchTopic(topic=topic, partitions=(part,)),)
    )
    (answer,) = wire.send_request(request, FETCH_VERSION, FetchResponse).responses[0].partitions
    assert not answer.error_code
    return answer.records or b"", answer.high_watermark


def _next_offset(records: bytes | memoryview) -> int:
    """The offset after the last whole batch. Walks the lengths only."""
    at, following = 0, -1
    while at + 61 <= len(records):
        base, size = struct.unpack_from(">qi", records, at)
        if at + 12 + size > len(records):
            break
        following = base + struct.unpack_from(">i", records, at + 23)[0] + 1
        at += 12 + size
    assert following >= 0, "no whole batch in an answer"
    return int(following)


# the goals are those of 2026-11-24
ROWS = (
    Row("heartbeats, 4 connections x 16 in flight", "1/s", True, 15, heartbeats(4, 16)),
    Row("heartbeats, 32 connections x 1", "1/s", True, 2, heartbeats(32, 1)),
    Row("OffsetCommit of 1 partition, 4 x 16", "1/s", True, 10, commits(4, 16, 1)),
    Row("OffsetCommit of 1 partition, 16 x 16", "1/s", True, 5, commits(16, 16, 1)),
    Row("OffsetCommit of 50 partitions, 16 x 16", "1/s", True, 4.5, commits(16, 16, 50)),
    Row("rebalance of 100 members", "ms", False, 0.35, rebalances(100)),
    Row("rebalance of 1,000 members", "ms", False, 0.5, rebalances(1000)),
    Row("rebalance of 5,000 members", "ms", False, 0.5, rebalances(5000, rounds=2)),
    Row("5,000 one-member groups joined", "s", False, 0.4, held(5000)),
    Row("produce 100 B records, 64 KB batches, acks=all", "MB/s", True, 3, produce(100, 64_000)),
    Row("produce 1 KB records, 128 KB batches, acks=all", "MB/s", True, 3, produce(1000, 128_000)),
    Row("consume 100 B records", "MB/s", True, 3, consume(100, 64_000)),
    Row("consume 1 KB records", "MB/s", True, 3, consume(1000, 128_000)),
)
