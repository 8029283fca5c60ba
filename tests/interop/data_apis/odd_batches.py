"""Batches that no producer sends: headers with numbers at the ends of their ranges; and such Fetches."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack_into

from tests.interop.data_apis.scenario import Line, Notice
from tests.unit.coordinator.api.data_world import batch, fetch_request, produce_request

from rota.protocol.crc import crc32c
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.records.batch import FIELDS, field_at

T0_MS = 1_500_000_000_000
INT16, INT32, INT64 = ((-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
COVERED_AT = field_at("attributes")  # by the checksum, from there on
UNCOVERED = {"base_offset": (1, -1, *INT64), "leader_epoch": (0, 5, -7, INT32[1]), "magic": (0, 1)}
COVERED: tuple[dict[str, int], ...] = (
    *({"attributes": each} for each in (0x08, 0x18, 0x48, 0x10, 0x20, 0x30, 0x40, 0x80, 0x4000, INT16[0])),
    {"attributes": 0x08, "max_timestamp": -1},
    {"attributes": 0x08, "max_timestamp": 4_000_000_000_000},
    *({"count": each} for each in (0, 1, 3, -1, *INT32)),
    *({"last_offset_delta": each} for each in (0, 2, -1, -2, *INT32)),
    *({"count": each, "last_offset_delta": each - 1} for each in (0, 3, 1_000_001, INT32[1])),
    *({"base_timestamp": first, "max_timestamp": last} for first, last in ((0, 0), (-1, -1), (T0_MS, 0), (-1, T0_MS))),
    *(
        {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        for producer_id, epoch, sequence in (
            (-1, 5, 3),
            (-1, -1, 0),
            (5, -1, 0),
            (5, 0, -1),
            (-2, 0, 0),
            (INT64[0], 0, 0),
            (INT64[1], 0, 0),
            (7, INT16[1], 0),
            (8, -5, 0),
            (9, 0, -5),
            (21, 0, INT32[1] - 1),
            (21, 0, 0),
            (22, 0, INT32[1]),
            (22, 0, 1),
            (22, 0, INT32[1]),
        )
    ),
)
LENGTHS = (INT32[0], -1, 0, 13, 14, 48, 49, 60, 10**6)
REST = (b"x", b"x" * 11, bytes(12), b"x" * 61)
FETCHES: tuple[dict[str, int], ...] = (
    *({"current_leader_epoch": each} for each in (-7, INT32[0])),
    *({"last_fetched_epoch": each} for each in (-5, INT32[0])),
    *({name: each} for name in ("log_start_offset", "max_wait_ms", "min_bytes") for each in (-5, -1)),
    *({"session_id": 0, "session_epoch": each} for each in (-5, 5)),
    {"session_id": -5, "session_epoch": 1},
    {"replica_id": -3},
)


def send_odd_batches(broker: Notice) -> Iterator[Line]:
    """The conversation. Each batch is followed by the end of the log."""
    broker.topic("odd", retention_ms="-1")
    name = broker.names["odd"]
    broker.until_led(_end(name), 7)
    good = batch(b"a", b"b", timestamp=T0_MS)
    for field, numbers in UNCOVERED.items():
        for number in numbers:
            yield broker.send_request(f"{field} {number}", produce_request(_with(good, {field: number}), name), 9)
            yield broker.send_request("end", _end(name), 7)
    for fields in COVERED:
        changed = bytearray(_with(good, fields))
        pack_into(">I", changed, field_at("crc"), crc32c(changed[COVERED_AT:]))
        yield broker.send_request(f"{fields}", produce_request(bytes(changed), name), 9)
        yield broker.send_request("end", _end(name), 7)
    yield from _lengths(broker, name, good)
    yield from _fetches(broker, good)


def _lengths(broker: Notice, name: str, good: bytes) -> Iterator[Line]:
    """Bytes that do not have the length of one batch."""
    for length in LENGTHS:
        for magic in (0, 1, 2, 3):
            changed = _with(good, {"length": length, "magic": magic})
            yield broker.send_request(f"length {length}, magic {magic}", produce_request(changed, name), 9)
    for cut in (11, 12, 16, 17, 60, 61, len(good) - 1):
        yield broker.send_request(f"cut at {cut}", produce_request(good[:cut], name), 9)
    for number, rest in enumerate((*REST, good[:30], good[:-1], good)):
        yield broker.send_request(f"followed by {number}", produce_request(good + rest, name), 9)
        yield broker.send_request("end", _end(name), 7)


def _fetches(broker: Notice, good: bytes) -> Iterator[Line]:
    """Of another topic: Kafka changes attributes and timestamps of odd batches before it keeps them."""
    broker.topic("fetched", retention_ms="-1")
    name = broker.names["fetched"]
    broker.until_led(_end(name), 7)
    yield broker.send_request("good", produce_request(good, name), 9)
    for how in FETCHES:
        yield broker.send_request(f"{how}", fetch_request((name, 0, 0), **how), 12)


def _with(records: bytes, fields: dict[str, int]) -> bytes:
    changed = bytearray(records)
    for field, number in fields.items():
        pack_into(">" + FIELDS[field], changed, field_at(field), number)
    return bytes(changed)


def _end(name: str) -> ListOffsetsRequest:
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=-1),)
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=name, partitions=partitions),))
