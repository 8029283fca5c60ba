"""The records of groups as the bytes of `__consumer_offsets`, and back.

Laws
    Keys and values are byte-equal to Apache Kafka's, so that tools which read that topic keep working.
    Unknown key types (a newer broker's) are skipped, as Kafka does when it loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from struct import Struct
from sys import intern
from typing import Any

from rota.coordinator.group.effects import GroupRecord, GroupValue, MemberValue, OffsetRecord, OffsetRecords, Record
from rota.coordinator.group.events import InstanceId, MemberId
from rota.coordinator.group.offsets import decode_offset, encode_offset
from rota.coordinator.runtime.contract import BATCH_RECORD_BYTES_MAX, Encoded
from rota.protocol import offsets_records as wire
from rota.protocol.records.batch import BATCH_HEADER_BYTES
from rota.protocol.records.offset_columns import offset_pairs, offset_records, offset_run, pairs_bytes

RECORD_OVERHEAD_BYTES = 21  # of a record in a batch, as Kafka estimates it: its length, attributes and deltas
GROUP_VALUE_VERSION = 3
REMEMBERED_KEYS_MAX = 65_536  # a client commits offsets of the same topics again and again
REMEMBERED_NAMES_MAX = 64  # while a log is replayed
REMEMBERED_CHARS_MAX = 256  # of a group id; longer ones are not kept

_pack_size = Struct(">i").pack  # of an array or of bytes, before version 4


def can_fit_in_batch(records: Iterable[OffsetRecord | OffsetRecords], bytes_max: int) -> bool:
    """Return whether one batch of at most `bytes_max` bytes takes all these offsets, as one commit writes them."""
    encoded = encode(records)
    return pairs_bytes(encoded) + len(encoded) * RECORD_OVERHEAD_BYTES + BATCH_HEADER_BYTES <= bytes_max


def encode(records: Iterable[Any], encode_other: Callable[[Any], Encoded] | None = None) -> list[Encoded]:
    """Return key and value of each record: offsets as value v4 (v1 with an expiry), groups as value v3.

    `encode_other` encodes records of other machines that are written to the same partition.
    """
    encoded: list[Encoded] = []
    for record in records:
        if type(record) is OffsetRecords:
            offset_pairs(_lead(record.group_id, record.topic), record.partitions, record.values, encoded)
        elif type(record) is OffsetRecord:
            key = _lead(record.group_id, record.topic) + wire.pack_partition(record.partition)
            encoded.append((key, None if record.value is None else encode_offset(record.value)))
        elif encode_other is None or type(record) is GroupRecord:
            encoded.append(_encode_group(record))
        else:
            encoded.append(encode_other(record))
    return encoded


def encode_batch(records: list[Any]) -> tuple[bytes, int] | None:
    """Return the bytes of these records in a batch, and how many they are; None unless all are offsets, and few."""
    return offset_records(records, OffsetRecords, _lead, BATCH_RECORD_BYTES_MAX)


def _encode_group(record: Record) -> Encoded:
    assert type(record) is GroupRecord
    value = record.value
    return wire.group_key_writer()(record.group_id), None if value is None else _group_value(value)


def decode(key: bytes, value: bytes | None) -> Record | None:
    """Return the record in these bytes, or None for a kind that this release does not know. Raises DecodeError."""
    match wire.decode_key(key):
        case wire.OffsetCommitKey(group=group_id, topic=topic, partition=partition):
            return OffsetRecord(group_id, topic, partition, None if value is None else decode_offset(value))
        case wire.GroupMetadataKey(group=group_id):
            return GroupRecord(group_id, None if value is None else _read_group(value))
        case _:
            return None


def decode_many(
    entries: list[tuple[bytes, bytes | None]], decode_other: Callable[[bytes, bytes | None], Any]
) -> Iterator[Any]:
    """Iterate over the records in these keys and values; offsets of one topic in a row are one record.

    `decode_other` decodes what is not such an offset. Raises DecodeError.
    """
    at = 0
    while at < len(entries):
        lead, partitions, values = offset_run(entries, at)
        if partitions:
            at += len(partitions)
            yield OffsetRecords(*_names(lead), partitions, values)
        else:
            record = decode_other(*entries[at])
            at += 1
            if record is not None:
                yield record


@lru_cache(REMEMBERED_NAMES_MAX)
def _names(lead: bytes) -> tuple[str, str]:
    """Return group and topic of a key without its partition; groups share the name of a topic."""
    key = wire.decode_key(lead + wire.pack_partition(0))
    assert isinstance(key, wire.OffsetCommitKey)
    return key.group, intern(key.topic)


def _lead(group_id: str, topic: str) -> bytes:
    return (_remembered_lead if len(group_id) <= REMEMBERED_CHARS_MAX else _key_lead)(group_id, topic)


def _key_lead(group_id: str, topic: str) -> bytes:
    return wire.offset_key_writer()(group_id, topic)


_remembered_lead = lru_cache(REMEMBERED_KEYS_MAX)(_key_lead)


def _group_value(value: GroupValue) -> bytes:
    """Return the value of a group's record; what its members share is encoded once, not once for each of them."""
    write_ids, write_others = wire.member_writers(GROUP_VALUE_VERSION)
    head = wire.group_writer(GROUP_VALUE_VERSION)
    written = [head(value.protocol_type, value.generation, value.protocol, value.leader, value.state_ms)]
    written.append(_pack_size(len(value.members)))
    shared: dict[tuple[str, str, int, int, bytes], bytes] = {}
    for member in value.members:
        others = (member.client_id, member.client_host, member.rebalance_ms, member.session_ms, member.subscription)
        encoded = shared.get(others)
        if encoded is None:
            encoded = shared[others] = write_others(*others)
        assignment = member.assignment
        written += (write_ids(member.member_id, member.instance_id), encoded, _pack_size(len(assignment)), assignment)
    return b"".join(written)


def _read_group(raw: bytes) -> GroupValue:
    value = wire.decode_value(wire.GroupMetadataValue, raw)
    return GroupValue(
        protocol_type=value.protocol_type,
        generation=value.generation,
        protocol=value.protocol,
        leader=None if value.leader is None else MemberId(value.leader),
        state_ms=value.current_state_timestamp,
        members=tuple(
            MemberValue(
                member_id=MemberId(member.member_id),
                instance_id=None if member.group_instance_id is None else InstanceId(member.group_instance_id),
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_ms=member.rebalance_timeout if member.rebalance_timeout >= 0 else member.session_timeout,
                session_ms=member.session_timeout,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in value.members
        ),
    )
