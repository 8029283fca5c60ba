"""Requests that no client sends: odd transactional ids, numbers at the ends of their ranges, names that come twice."""

from __future__ import annotations

from collections.abc import Iterator

from tests.interop.transaction_apis.scenario_client import Line, ScenarioClient

from rota.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from rota.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from rota.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

IDS = ("ü", "😀", "a b", "a/b", "a\x00b", "a\nb", "𝔘" * 50, "x" * 20_000, ".", "__transaction_state", "%s{}", "[a]")
INT16, INT32, INT64 = ((-(2**bits), 2**bits - 1) for bits in (15, 31, 63))


def send_odd_requests(t: ScenarioClient) -> Iterator[Line]:
    """The conversation."""
    yield from _ids(t)
    yield from _numbers(t)
    yield from _partitions(t)
    yield from _offsets(t)
    yield from _shown(t)


def _ids(t: ScenarioClient) -> Iterator[Line]:
    for number, name in enumerate(IDS):
        step = f"id {number}"
        producer = t.new(name)
        yield t.add(step, name, producer, 0)
        yield t.describe(step, name)
        yield t.end(step, name, producer, True, 4)
        yield t.describe(step, name)


def _numbers(t: ScenarioClient) -> Iterator[Line]:
    t.new("odd")
    for timeout_ms in (1, *INT32):
        yield t.init("timeout", "odd", ms=timeout_ms)
    producer_id, epoch = t.new("odd")
    for had_epoch in (-2, *INT16, INT16[1] - 1):
        for version in (3, 4, 5):
            yield t.init(f"had epoch {had_epoch}", "odd", (producer_id, had_epoch), version)
    for had_id in (-2, -5, *INT64):
        yield t.init(f"had id {had_id}", "odd", (had_id, 0))
    producers = [(-1, -1), (-2, 0), (INT64[1], epoch), *((producer_id, each) for each in (-1, -2, *INT16))]
    for number, producer in enumerate(producers):
        for version in range(6):
            step = f"producer {number}"
            yield t.add(step, "odd", producer, 0, version=version)
            yield t.end(step, "odd", producer, True, version)
            if version < 5:
                yield t.offsets(step, "odd", producer, version)
    yield t.describe("nothing has changed", "odd")


def _partitions(t: ScenarioClient) -> Iterator[Line]:
    for version in (0, 3, 4, 5):
        name = f"odd partitions {version}"
        producer = t.new(name)
        yield t.add("no partition", name, producer, version=version)
        yield t.describe("begun without a partition", name)
        for indexes in ((-1,), INT32, (0, 0), (0, -1)):
            yield t.add(f"partitions {indexes}", name, producer, *indexes, version=version)
        for topic in ("", "a/b", "nope", "__consumer_offsets"):
            yield _add_topics(t, f"topic {topic}", name, producer, ((topic, (0,)), (t.topic, (1,))), version)
        yield _add_topics(t, "topics twice", name, producer, ((t.topic, (0,)), ("nope", ()), (t.topic, (1,))), version)
        yield _add_topics(t, "no topic", name, producer, (), version)
        yield t.end("abort", name, producer, False, 5 if version == 5 else 4)
        yield t.describe("aborted", name)
    for verify_only in (True, False):
        producer = t.new("verified")
        yield t.batched("partitions twice", "verified", producer, 0, 0, verify_only=verify_only)


def _add_topics(
    t: ScenarioClient,
    step: str,
    name: str,
    producer: tuple[int, int],
    named: tuple[tuple[str, tuple[int, ...]], ...],
    version: int,
) -> Line:
    topics = tuple(AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in named)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=t.named(name), producer_id=producer[0], producer_epoch=producer[1], topics=topics
    )
    if version >= 4:
        return t.line(step, AddPartitionsToTxnRequest(transactions=(transaction,)), version)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=t.named(name),
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=topics,
    )
    return t.line(step, request, version)


def _offsets(t: ScenarioClient) -> Iterator[Line]:
    for version in range(6):
        name = f"odd offsets {version}"
        producer = t.new(name)
        for group, transactional_id in (("", name), ("odd group", ""), ("", "")):
            for indexes in ((0,), (0, 99), (-1,), ()):
                step = f"group {group!r}, id {transactional_id!r}, partitions {indexes}"
                yield _commit(t, step, transactional_id, producer, group, indexes, version)
        for metadata in ("m" * 4_097, "ü" * 4_096, None):
            step = f"metadata of {len(metadata or '')}"
            yield _commit(t, step, name, producer, "", (0,), version, metadata)
        yield t.describe("nothing is added", name)


def _commit(
    t: ScenarioClient,
    step: str,
    name: str,
    producer: tuple[int, int],
    group: str,
    indexes: tuple[int, ...],
    version: int,
    metadata: str | None = "",
) -> Line:
    partitions = tuple(
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata=metadata)
        for index in indexes
    )
    request = TxnOffsetCommitRequest(
        transactional_id=t.named(name),
        group_id=t.named(group),
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=(TxnOffsetCommitRequestTopic(name=t.topic, partitions=partitions),),
    )
    return t.line(step, request, version)


def _shown(t: ScenarioClient) -> Iterator[Line]:
    producer_id, _ = t.new("odd list")
    own = {"producer_id_filters": (producer_id,)}
    for states in (("",), ("empty",), ("Empty", "Empty"), ("Bogus", "Bogus", "Ongoing ")):
        yield t.list(f"states {states}", state_filters=states, **own)
    for duration_ms in (-2, *INT64):
        yield t.list(f"time {duration_ms}", duration_filter=duration_ms, **own)
    yield t.describe("nothing")
    yield t.describe("twice", "odd list", "odd list", "")
    for topic, index in (("nope", 0), ("", 0), ("a/b", 0), (t.topic, -1), (t.topic, 99)):
        topics = (TopicRequest(name=topic, partition_indexes=(index, index)),)
        yield t.line(f"producers of {index}", DescribeProducersRequest(topics=topics), 0)
