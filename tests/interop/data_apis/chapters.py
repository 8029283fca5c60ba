"""What is asked, in order. Each chapter makes its own topics."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from tests.interop.data_apis.odd_batches import send_odd_batches
from tests.interop.data_apis.scenario import Line, Notice
from tests.unit.coordinator.api.data_world import batch, fetch_request, produce_request, produces

from rota.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rota.protocol.records.batch import Codec

Chapter = Callable[[Notice], Iterator[Line]]

T0_MS = 1_500_000_000_000  # record times; retention is off, so that they stay
LATER_MS = 4_000_000_000_000
KEEP = {"retention_ms": "-1"}
GOOD = batch(b"a", b"b", timestamp=T0_MS)
CORRUPT = GOOD[:-1] + bytes([GOOD[-1] ^ 1])
FOREIGN = bytes(range(16))


def _new(answer: Notice, name: str, partitions: int = 1, **configs: str) -> str:
    answer.topic(name, partitions, **{**KEEP, **configs})
    for index in range(partitions):
        answer.until_led(_time(answer.names[name], -1, index=index), 7)
    return answer.names[name]


def _time(name: str, time: int, *, index: int = 0, epoch: int = -1, isolation: int = 0) -> ListOffsetsRequest:
    requests = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=time)
    topic = ListOffsetsTopic(name=name, partitions=(requests,))
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=(topic,), timeout_ms=1000)


def produce(answer: Notice) -> Iterator[Line]:
    name = _new(answer, "produce", 2)
    nowhere = name + "-not"
    for version in range(3, 13):
        yield answer.send_request("good", produce_request(GOOD, name), version)
    yield answer.send_request("good by id", produce_request(GOOD, answer.ids["produce"]), 13)
    yield answer.send_request("foreign id", produce_request(GOOD, FOREIGN), 13)
    yield answer.send_request("no id", produce_request(GOOD, bytes(16)), 13)
    yield answer.send_request("acks 1", produce_request(GOOD, name, acks=1), 9)
    yield answer.send_request("acks 5", produce_request(GOOD, name, acks=5), 9)
    yield answer.send_request("acks 5, unknown topic", produce_request(GOOD, nowhere, acks=5), 9)
    yield answer.send_request("unknown topic", produce_request(GOOD, nowhere), 9)
    for index in (7, -1):
        yield answer.send_request(f"partition {index}", produce_request(GOOD, name, index), 9)
    for what, records in _broken().items():
        yield answer.send_request(what, produce_request(records, name), 9)
    zstd = batch(b"a" * 1000, timestamp=T0_MS, codec=Codec.ZSTD)
    for version in (6, 7):
        yield answer.send_request("zstd", produce_request(zstd, name), version)
    yield answer.send_request("no topics", produces([]), 9)
    yield answer.send_request(
        "some good, some bad", produces([(name, 0, GOOD), (name, 1, CORRUPT), (nowhere, 0, GOOD)]), 9
    )
    yield answer.send_request("acks 0", produce_request(GOOD, name, acks=0), 9)
    yield answer.send_request("acks 0, corrupt", produce_request(CORRUPT, name, acks=0), 9)
    yield answer.send_request("acks 0, unknown topic", produce_request(GOOD, nowhere, acks=0), 9)
    yield answer.send_request("after all that", produce_request(GOOD, name), 9)


def _broken() -> dict[str, bytes]:
    return {
        "two batches": GOOD + GOOD,
        "no batch": b"",
        "less than a header": GOOD[:30],
        "cut": GOOD[:-3],
        "corrupt": CORRUPT,
        "magic 1": GOOD[:16] + struct.pack(">b", 1) + GOOD[17:],
        "too large": batch(b"a" * 1_100_000, timestamp=T0_MS),
        "from the future": batch(b"a", b"b", timestamp=LATER_MS),
        "without time": batch(b"a", timestamp=-1),
        "control": batch(b"a", timestamp=T0_MS, is_control=True),
        "of a transaction": batch(
            b"a", timestamp=T0_MS, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True
        ),
        "idempotent without sequence": batch(b"a", timestamp=T0_MS, producer_id=5, producer_epoch=0),
    }


def topics_with_a_will(answer: Notice) -> Iterator[Line]:
    compacted = _new(answer, "compacted", cleanup_policy="compact")
    yield answer.send_request(
        "without key", produce_request(batch(b"a", b"b", key=None, timestamp=T0_MS), compacted), 9
    )
    stamped = _new(answer, "stamped", message_timestamp_type="LogAppendTime")
    yield answer.send_request("append time", produce_request(GOOD, stamped), 9)
    yield answer.send_request("the largest time", _time(stamped, -3), 7)
    past = _new(answer, "past", message_timestamp_before_max_ms="1000")
    yield answer.send_request("too old", produce_request(GOOD, past), 9)
    small = _new(answer, "small", max_message_bytes="200")
    yield answer.send_request("too large for this topic", produce_request(batch(b"a" * 200, timestamp=T0_MS), small), 9)
    plain = _new(answer, "plain", compression_type="uncompressed")
    yield answer.send_request(
        "compressed", produce_request(batch(b"a" * 500, timestamp=T0_MS, codec=Codec.GZIP), plain), 9
    )
    yield answer.send_request("kept plain", fetch_request((plain, 0, 0)), 11)


def idempotence(answer: Notice) -> Iterator[Line]:
    name = _new(answer, "idempotent", 2)
    for version in range(6):
        yield answer.send_request("an id", _init(), version)
    for had in ((3, 0), (99_999, 7), (-1, 5), (5, -1), (3, 32_767)):
        yield answer.send_request(f"had {had}", _init(had=had), 4)
    for what, request in {
        "empty transactional id": _init(transactional_id=""),
        "too long a transaction": _init(transactional_id="tx", timeout_ms=10**9),
        "no time at all": _init(transactional_id="tx", timeout_ms=0),
    }.items():
        yield answer.send_request(what, request, 4)
    yield answer.send_request("an id", _init(), 4)
    producer_id = answer.producer_id
    for step in (0, 0, 2, 10, 4, 6, 8, 10, 12, 12, 4, 2, 0, 11, 13):
        yield answer.send_request(f"sequence {step}", _sequenced(name, producer_id, step), 9)
    for epoch, step in ((1, 14), (1, 0), (0, 14), (3, 0)):
        yield answer.send_request(f"epoch {epoch}, sequence {step}", _sequenced(name, producer_id, step, epoch), 9)
    for step in (7, 9, 17):
        yield answer.send_request(
            f"other partition, sequence {step}", _sequenced(name, producer_id, step, 3, index=1), 9
        )


def _init(
    transactional_id: str | None = None, timeout_ms: int = 60_000, had: tuple[int, int] = (-1, -1)
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=had[0],
        producer_epoch=had[1],
    )


def _sequenced(name: str, producer_id: int, sequence: int, epoch: int = 0, index: int = 0) -> Any:
    records = batch(b"a", b"b", timestamp=1000, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return produce_request(records, name, index)


def fetch(answer: Notice) -> Iterator[Line]:
    name, other = _new(answer, "fetch", 3), _new(answer, "fetch-other")
    for _ in range(5):
        answer.wire.send_request(produce_request(GOOD, name), 9)
    answer.wire.send_request(produces([(name, 1, GOOD), (other, 0, GOOD)]), 9)
    for version in range(4, 19):
        yield answer.send_request(
            "from the start", fetch_request((name if version < 13 else answer.ids["fetch"], 0, 0)), version
        )
    for offset in (3, 10, 11, -1):
        yield answer.send_request(f"offset {offset}", fetch_request((name, 0, offset)), 11)
    for what, how in _ways().items():
        yield answer.send_request(what, fetch_request((name, 0, 2), **how), 12)
    for what, requests in {
        "unknown topic": [("not-" + name, 0, 0)],
        "unknown topic beside an empty one": [("not-" + name, 0, 0), (name, 2, 0)],
        "unknown partition": [(name, 9, 0)],
        "two": [(name, 0, 0), (name, 1, 0)],
        "three": [(name, 0, 0), (name, 1, 0), (other, 0, 0)],
        "none": [],
    }.items():
        yield answer.send_request(what, fetch_request(*requests, max_wait_ms=100, max_bytes=100), 11)
    for topic_id in (FOREIGN, bytes(16)):
        yield answer.send_request("unknown id", fetch_request((topic_id, 0, 0)), 13)


def _ways() -> dict[str, dict[str, int]]:
    return {
        "one byte of the partition": {"partition_max_bytes": 1},
        "no byte of the partition": {"partition_max_bytes": 0},
        "a hundred bytes of the partition": {"partition_max_bytes": 100},
        "one byte": {"max_bytes": 1},
        "read committed": {"isolation_level": 1},
        "this epoch": {"current_leader_epoch": 0},
        "an epoch to come": {"current_leader_epoch": 5},
        "last fetched in this epoch": {"last_fetched_epoch": 0},
        "last fetched in an epoch to come": {"last_fetched_epoch": 3},
        "more than there is": {"min_bytes": 1_000_000, "max_wait_ms": 100},
        "more than fits": {"min_bytes": 1_000_000, "max_wait_ms": 4_000, "max_bytes": 100},
        "nothing": {"min_bytes": 0, "max_wait_ms": 4_000},
        "a follower nobody knows": {"replica_id": 5},
    }


def sessions(answer: Notice) -> Iterator[Line]:
    name, other = _new(answer, "session", 3), _new(answer, "session-other")
    answer.wire.send_request(produces([(name, 0, GOOD), (name, 1, GOOD), (other, 0, GOOD)]), 9)
    yield answer.send_request("begin", fetch_request((name, 0, 0), (name, 1, 0), (name, 2, 0), session_epoch=0), 11)

    def next_(step: str, epoch: int, *requests: tuple[str | bytes, int, int], version: int = 11, **how: Any) -> Line:
        return answer.send_request(
            step, fetch_request(*requests, session_id=answer.session, session_epoch=epoch, **how), version
        )

    yield next_("the same again", 1)
    yield next_("moved on", 2, (name, 0, 2), (name, 1, 2))
    yield next_("nothing new", 3, max_wait_ms=100)
    answer.wire.send_request(produce_request(GOOD, name, 2), 9)
    yield next_("news", 4, max_wait_ms=4_000)
    yield next_("a wrong epoch", 9)
    yield next_("an epoch again", 4)
    yield next_("one forgotten, one added", 5, (other, 0, 0), forgotten=[(name, 2)])
    yield next_("the same again", 6)
    yield next_("out of range", 7, (name, 0, 99))
    yield next_("still out of range", 8)
    yield next_("in range", 9, (name, 0, 2))
    yield next_("by id", 10, (answer.ids["session"], 0, 2), version=13)
    yield next_("unknown topic", 10, ("not-" + name, 0, 0))
    yield next_("all forgotten", 11, forgotten=[(name, 0), (name, 1), (other, 0), ("not-" + name, 0)])
    yield next_("after the end", 12)
    yield answer.send_request(
        "no such session", fetch_request((name, 0, 0), session_id=123_456_789, session_epoch=1), 11
    )
    yield answer.send_request("no session, later epoch", fetch_request((name, 0, 0), session_epoch=3), 11)
    yield answer.send_request("nothing to begin with", fetch_request(session_epoch=0), 11)


def offsets(answer: Notice) -> Iterator[Line]:
    name = _new(answer, "offsets", 2)
    for time in (-1, -2, -3, -4, -5, -6, -7, 0):
        yield answer.send_request(f"empty, time {time}", _time(name, time), 11)
    for records in (
        batch(b"a", b"b", timestamp=T0_MS, step_ms=10),
        batch(b"c", b"d", timestamp=T0_MS + 2000, step_ms=-500),
        batch(b"e", timestamp=T0_MS + 1000),
    ):
        answer.wire.send_request(produce_request(records, name), 9)
    for version in range(1, 12):
        for time in (-1, -2, -3, -4, -5, -6, T0_MS + 1500):
            yield answer.send_request(f"time {time}", _time(name, time), version)
    for after_ms in (-1, 0, 1, 10, 11, 1500, 1600, 2000, 2001):
        yield answer.send_request(f"{after_ms} ms later", _time(name, T0_MS + after_ms), 7)
    yield answer.send_request("another epoch", _time(name, -1, epoch=5), 7)
    yield answer.send_request("read committed", _time(name, -1, isolation=1), 7)
    yield answer.send_request("unknown partition", _time(name, -1, index=8), 7)
    yield answer.send_request("unknown topic", _time("not-" + name, -1), 7)
    for epoch, current in ((0, -1), (0, 0), (1, -1), (7, -1), (-1, -1), (0, 3)):
        yield answer.send_request(f"end of epoch {epoch} in {current}", _epoch(name, epoch, current), 4)
    yield answer.send_request("end of epoch, empty", _epoch(name, 0, index=1), 3)
    yield answer.send_request("end of epoch, unknown", _epoch("not-" + name, 0), 2)
    for offset in (0, 3, 1, 9, -2, -1):
        yield answer.send_request(f"delete before {offset}", _delete(name, offset), 2)
        yield answer.send_request("earliest", _time(name, -2), 7)
    yield answer.send_request("delete, unknown partition", _delete(name, 0, index=9), 1)
    yield answer.send_request("delete, compacted", _delete(_new(answer, "kept", cleanup_policy="compact"), 0), 2)


def _epoch(name: str, epoch: int, current: int = -1, index: int = 0) -> OffsetForLeaderEpochRequest:
    item = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=(OffsetForLeaderTopic(topic=name, partitions=(item,)),))


def _delete(name: str, offset: int, index: int = 0) -> DeleteRecordsRequest:
    item = DeleteRecordsPartition(partition_index=index, offset=offset)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=name, partitions=(item,)),), timeout_ms=1000)


CHAPTERS: dict[str, Chapter] = {
    "produce": produce,
    "topics with a will": topics_with_a_will,
    "idempotence": idempotence,
    "fetch": fetch,
    "sessions": sessions,
    "offsets": offsets,
    "odd batches": send_odd_batches,
}
