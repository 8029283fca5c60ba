"""The records of groups as the bytes of `__consumer_offsets`, and back.

Laws
    Keys and values are byte-equal to Apache Kafka's, so that tools which read that topic keep working.
    Unknown key types (a newer broker's) are skipped, as Kafka does when it loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from rota.coordinator.group.effects import GroupRecord, GroupValue, MemberValue, OffsetRecord, OffsetValue, Record
from rota.coordinator.group.events import InstanceId, MemberId
from rota.coordinator.runtime.contract import Encoded
from rota.protocol import offsets_records as wire
from rota.protocol.records.batch import BATCH_HEADER_BYTES
from rota.protocol.wire import UUID_ZERO

NO_EXPIRY = -1
NO_METADATA = b"\x01"  # an empty string of a flexible version
RECORD_OVERHEAD_BYTES = 21  # of a record in a batch, as Kafka estimates it: its length, attributes and deltas
REMEMBERED_KEYS_MAX = 65_536  # a client commits offsets of the same topics again and again
REMEMBERED_CHARS_MAX = 256  # of a group id; longer ones are not kept


def fit_in_batch(records: Iterable[OffsetRecord], bytes_max: int) -> bool:
    """Return whether one batch of at most `bytes_max` bytes takes all these offsets, as one commit writes them."""
    encoded = encode(records)
    size = sum(len(key or b"") + len(value or b"") for key, value in encoded)
    return size + len(encoded) * RECORD_OVERHEAD_BYTES + BATCH_HEADER_BYTES <= bytes_max


def encode(records: Iterable[Any], encode_other: Callable[[Any], Encoded] | None = None) -> list[Encoded]:
    """Return key and value of each record: offsets as value v4 (v1 with an expiry), groups as value v3.

    `encode_other` encodes records of other machines that are written to the same partition.
    """
    pack_partition, pack_head = wire.pack_partition, wire.pack_offset_head
    encoded: list[Encoded] = []
    lead, group_id, topic = b"", None, None
    tail, commit_ms, topic_id = b"", None, None
    for record in records:
        if type(record) is not OffsetRecord:
            if encode_other is None or type(record) is GroupRecord:
                encoded.append(_encode_group(record))
            else:
                encoded.append(encode_other(record))
            continue
        if record.topic is not topic or record.group_id is not group_id:
            group_id, topic = record.group_id, record.topic
            lead = (_remembered_lead if len(group_id) <= REMEMBERED_CHARS_MAX else _key_lead)(group_id, topic)
        value = record.value
        if value is None:
            raw = None
        elif value.expire_ms is None:
            if value.commit_ms != commit_ms or value.topic_id is not topic_id:
                commit_ms, topic_id = value.commit_ms, value.topic_id
                tail = wire.offset_tail_writer()(commit_ms, topic_id or UUID_ZERO)
            metadata = wire.metadata_writer()(value.metadata) if value.metadata else NO_METADATA
            raw = pack_head(wire.OFFSET_VERSION, value.offset, value.leader_epoch) + metadata + tail
        else:
            dated = wire.offset_writer(wire.OFFSET_WITH_EXPIRY_VERSION)
            raw = dated(value.offset, value.metadata, value.commit_ms, value.expire_ms)
        encoded.append((lead + pack_partition(record.partition), raw))
    return encoded


def _encode_group(record: Record) -> Encoded:
    assert type(record) is GroupRecord
    value = record.value
    return wire.encode_key(wire.GroupMetadataKey(group=record.group_id)), None if value is None else _group_value(value)


def decode(key: bytes, value: bytes | None) -> Record | None:
    """Return the record in these bytes, or None for a kind that this release does not know. Raises DecodeError."""
    match wire.decode_key(key):
        case wire.OffsetCommitKey(group=group_id, topic=topic, partition=partition):
            return OffsetRecord(group_id, topic, partition, None if value is None else _read_offset(value))
        case wire.GroupMetadataKey(group=group_id):
            return GroupRecord(group_id, None if value is None else _read_group(value))
        case _:
            return None


def _key_lead(group_id: str, topic: str) -> bytes:
    return wire.offset_key_writer()(group_id, topic)


_remembered_lead = lru_cache(REMEMBERED_KEYS_MAX)(_key_lead)


def _group_value(value: GroupValue) -> bytes:
    return wire.encode_value(
        wire.GroupMetadataValue(
            protocol_type=value.protocol_type,
            generation=value.generation,
            protocol=value.protocol,
            leader=value.leader,
            current_state_timestamp=value.state_ms,
            members=tuple(
                wire.MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_ms,
                    session_timeout=member.session_ms,
                    subscription=member.subscription,
                    assignment=member.assignment,
                )
                for member in value.members
            ),
        ),
        3,
    )


def _read_offset(raw: bytes) -> OffsetValue:
    value = wire.decode_value(wire.OffsetCommitValue, raw)
    return OffsetValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_ms=value.commit_timestamp,
        expire_ms=None if value.expire_timestamp == NO_EXPIRY else value.expire_timestamp,
        topic_id=None if value.topic_id == bytes(16) else value.topic_id,
    )


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
