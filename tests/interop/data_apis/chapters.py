"""What is asked, in order. Each chapter makes its own topics."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from tests.interop.data_apis.story import Line, Told
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

Chapter = Callable[[Told], Iterator[Line]]

T0_MS = 1_500_000_000_000  # record times; retention is off, so that they stay
LATER_MS = 4_000_000_000_000
KEEP = {"retention_ms": "-1"}
GOOD = batch(b"a", b"b", timestamp=T0_MS)
CORRUPT = GOOD[:-1] + bytes([GOOD[-1] ^ 1])
FOREIGN = bytes(range(16))


def _new(told: Told, name: str, partitions: int = 1, **configs: str) -> str:
    told.topic(name, partitions, **{**KEEP, **configs})
    for index in range(partitions):
        told.until_led(_time(told.names[name], -1, index=index), 7)
    return told.names[name]


def _time(name: str, time: int, *, index: int = 0, epoch: int = -1, isolation: int = 0) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=time)
    topic = ListOffsetsTopic(name=name, partitions=(asked,))
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=(topic,), timeout_ms=1000)


def produce(told: Told) -> Iterator[Line]:
    name = _new(told, "produce", 2)
    nowhere = name + "-not"
    for version in range(3, 13):
        yield told.ask("good", produce_request(GOOD, name), version)
    yield told.ask("good by id", produce_request(GOOD, told.ids["produce"]), 13)
    yield told.ask("foreign id", produce_request(GOOD, FOREIGN), 13)
    yield told.ask("no id", produce_request(GOOD, bytes(16)), 13)
    yield told.ask("acks 1", produce_request(GOOD, name, acks=1), 9)
    yield told.ask("acks 5", produce_request(GOOD, name, acks=5), 9)
    yield told.ask("acks 5, unknown topic", produce_request(GOOD, nowhere, acks=5), 9)
    yield told.ask("unknown topic", produce_request(GOOD, nowhere), 9)
    for index in (7, -1):
        yield told.ask(f"partition {index}", produce_request(GOOD, name, index), 9)
    for what, records in _broken().items():
        yield told.ask(what, produce_request(records, name), 9)
    zstd = batch(b"a" * 1000, timestamp=T0_MS, codec=Codec.ZSTD)
    for version in (6, 7):
        yield told.ask("zstd", produce_request(zstd, name), version)
    yield told.ask("no topics", produces([]), 9)
    yield told.ask("some good, some bad", produces([(name, 0, GOOD), (name, 1, CORRUPT), (nowhere, 0, GOOD)]), 9)
    yield told.ask("acks 0", produce_request(GOOD, name, acks=0), 9)
    yield told.ask("acks 0, corrupt", produce_request(CORRUPT, name, acks=0), 9)
    yield told.ask("acks 0, unknown topic", produce_request(GOOD, nowhere, acks=0), 9)
    yield told.ask("after all that", produce_request(GOOD, name), 9)


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


def topics_with_a_will(told: Told) -> Iterator[Line]:
    compacted = _new(told, "compacted", cleanup_policy="compact")
    yield told.ask("without key", produce_request(batch(b"a", b"b", key=None, timestamp=T0_MS), compacted), 9)
    stamped = _new(told, "stamped", message_timestamp_type="LogAppendTime")
    yield told.ask("append time", produce_request(GOOD, stamped), 9)
    yield told.ask("the largest time", _time(stamped, -3), 7)
    past = _new(told, "past", message_timestamp_before_max_ms="1000")
    yield told.ask("too old", produce_request(GOOD, past), 9)
    small = _new(told, "small", max_message_bytes="200")
    yield told.ask("too large for this topic", produce_request(batch(b"a" * 200, timestamp=T0_MS), small), 9)
    plain = _new(told, "plain", compression_type="uncompressed")
    yield told.ask("compressed", produce_request(batch(b"a" * 500, timestamp=T0_MS, codec=Codec.GZIP), plain), 9)
    yield told.ask("kept plain", fetch_request((plain, 0, 0)), 11)


def idempotence(told: Told) -> Iterator[Line]:
    name = _new(told, "idempotent", 2)
    for version in range(6):
        yield told.ask("an id", _init(), version)
    for had in ((3, 0), (99_999, 7), (-1, 5), (5, -1), (3, 32_767)):
        yield told.ask(f"had {had}", _init(had=had), 4)
    for what, request in {
        "empty transactional id": _init(transactional_id=""),
        "too long a transaction": _init(transactional_id="tx", timeout_ms=10**9),
        "no time at all": _init(transactional_id="tx", timeout_ms=0),
    }.items():
        yield told.ask(what, request, 4)
    yield told.ask("an id", _init(), 4)
    producer_id = told.producer_id
    for step in (0, 0, 2, 10, 4, 6, 8, 10, 12, 12, 4, 2, 0, 11, 13):
        yield told.ask(f"sequence {step}", _sequenced(name, producer_id, step), 9)
    for epoch, step in ((1, 14), (1, 0), (0, 14), (3, 0)):
        yield told.ask(f"epoch {epoch}, sequence {step}", _sequenced(name, producer_id, step, epoch), 9)
    for step in (7, 9, 17):
        yield told.ask(f"other partition, sequence {step}", _sequenced(name, producer_id, step, 3, index=1), 9)


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


def fetch(told: Told) -> Iterator[Line]:
    name, other = _new(told, "fetch", 3), _new(told, "fetch-other")
    for _ in range(5):
        told.wire.ask(produce_request(GOOD, name), 9)
    told.wire.ask(produces([(name, 1, GOOD), (other, 0, GOOD)]), 9)
    for version in range(4, 19):
        yield told.ask("from the start", fetch_request((name if version < 13 else told.ids["fetch"], 0, 0)), version)
    for offset in (3, 10, 11, -1):
        yield told.ask(f"offset {offset}", fetch_request((name, 0, offset)), 11)
    for what, how in _ways().items():
        yield told.ask(what, fetch_request((name, 0, 2), **how), 12)
    for what, asked in {
        "unknown topic": [("not-" + name, 0, 0)],
        "unknown topic beside an empty one": [("not-" + name, 0, 0), (name, 2, 0)],
        "unknown partition": [(name, 9, 0)],
        "two": [(name, 0, 0), (name, 1, 0)],
        "three": [(name, 0, 0), (name, 1, 0), (other, 0, 0)],
        "none": [],
    }.items():
        yield told.ask(what, fetch_request(*asked, max_wait_ms=100, max_bytes=100), 11)
    for topic_id in (FOREIGN, bytes(16)):
        yield told.ask("unknown id", fetch_request((topic_id, 0, 0)), 13)


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


def sessions(told: Told) -> Iterator[Line]:
    name, other = _new(told, "session", 3), _new(told, "session-other")
    told.wire.ask(produces([(name, 0, GOOD), (name, 1, GOOD), (other, 0, GOOD)]), 9)
    yield told.ask("begin", fetch_request((name, 0, 0), (name, 1, 0), (name, 2, 0), session_epoch=0), 11)

    def next_(step: str, epoch: int, *asked: tuple[str | bytes, int, int], version: int = 11, **how: Any) -> Line:
        return told.ask(step, fetch_request(*asked, session_id=told.session, session_epoch=epoch, **how), version)

    yield next_("the same again", 1)
    yield next_("moved on", 2, (name, 0, 2), (name, 1, 2))
    yield next_("nothing new", 3, max_wait_ms=100)
    told.wire.ask(produce_request(GOOD, name, 2), 9)
    yield next_("news", 4, max_wait_ms=4_000)
    yield next_("a wrong epoch", 9)
    yield next_("an epoch again", 4)
    yield next_("one forgotten, one added", 5, (other, 0, 0), forgotten=[(name, 2)])
    yield next_("the same again", 6)
    yield next_("out of range", 7, (name, 0, 99))
    yield next_("still out of range", 8)
    yield next_("in range", 9, (name, 0, 2))
    yield next_("by id", 10, (told.ids["session"], 0, 2), version=13)
    yield next_("unknown topic", 10, ("not-" + name, 0, 0))
    yield next_("all forgotten", 11, forgotten=[(name, 0), (name, 1), (other, 0), ("not-" + name, 0)])
    yield next_("after the end", 12)
    yield told.ask("no such session", fetch_request((name, 0, 0), session_id=123_456_789, session_epoch=1), 11)
    yield told.ask("no session, later epoch", fetch_request((name, 0, 0), session_epoch=3), 11)
    yield told.ask("nothing to begin with", fetch_request(session_epoch=0), 11)


def offsets(told: Told) -> Iterator[Line]:
    name = _new(told, "offsets", 2)
    for time in (-1, -2, -3, -4, -5, -6, -7, 0):
        yield told.ask(f"empty, time {time}", _time(name, time), 11)
    for records in (
        batch(b"a", b"b", timestamp=T0_MS, step_ms=10),
        batch(b"c", b"d", timestamp=T0_MS + 2000, step_ms=-500),
        batch(b"e", timestamp=T0_MS + 1000),
    ):
        told.wire.ask(produce_request(records, name), 9)
    for version in range(1, 12):
        for time in (-1, -2, -3, -4, -5, -6, T0_MS + 1500):
            yield told.ask(f"time {time}", _time(name, time), version)
    for after_ms in (-1, 0, 1, 10, 11, 1500, 1600, 2000, 2001):
        yield told.ask(f"{after_ms} ms later", _time(name, T0_MS + after_ms), 7)
    yield told.ask("another epoch", _time(name, -1, epoch=5), 7)
    yield told.ask("read committed", _time(name, -1, isolation=1), 7)
    yield told.ask("unknown partition", _time(name, -1, index=8), 7)
    yield told.ask("unknown topic", _time("not-" + name, -1), 7)
    for epoch, current in ((0, -1), (0, 0), (1, -1), (7, -1), (-1, -1), (0, 3)):
        yield told.ask(f"end of epoch {epoch} in {current}", _epoch(name, epoch, current), 4)
    yield told.ask("end of epoch, empty", _epoch(name, 0, index=1), 3)
    yield told.ask("end of epoch, unknown", _epoch("not-" + name, 0), 2)
    for offset in (0, 3, 1, 9, -2, -1):
        yield told.ask(f"delete before {offset}", _delete(name, offset), 2)
        yield told.ask("earliest", _time(name, -2), 7)
    yield told.ask("delete, unknown partition", _delete(name, 0, index=9), 1)
    yield told.ask("delete, compacted", _delete(_new(told, "kept", cleanup_policy="compact"), 0), 2)


def _epoch(name: str, epoch: int, current: int = -1, index: int = 0) -> OffsetForLeaderEpochRequest:
    one = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=(OffsetForLeaderTopic(topic=name, partitions=(one,)),))


def _delete(name: str, offset: int, index: int = 0) -> DeleteRecordsRequest:
    one = DeleteRecordsPartition(partition_index=index, offset=offset)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=name, partitions=(one,)),), timeout_ms=1000)


CHAPTERS: dict[str, Chapter] = {
    "produce": produce,
    "topics with a will": topics_with_a_will,
    "idempotence": idempotence,
    "fetch": fetch,
    "sessions": sessions,
    "offsets": offsets,
}
