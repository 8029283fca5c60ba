"""Decode records into rows: committed offsets and groups of `__consumer_offsets`, events of groups' timelines. Pure.

Laws
    Each record is one row. A record that cannot be decoded, or is of an unknown kind, is a row of kind `skipped` with a
    reason; no record raises.
    Subscriptions and assignments are decoded only for groups of the consumer protocol; when one is invalid, the topics
    or partitions of the member are null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructType

from rota.protocol import consumer_group_records as consumer_records
from rota.protocol import group_timeline
from rota.protocol import offsets_records as records
from rota.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from rota.protocol.wire import DecodeError
from rota.spark_connector.spark_api import to_arrow_type

COMMIT: Final = "commit"  # an offset was committed
FORGOTTEN: Final = "forgotten"  # the offset was deleted: it expired, or it or its topic was deleted
GROUP: Final = "group"  # a group has a generation
GROUP_DELETED: Final = "gone"
EPOCH: Final = "epoch"  # a group of KIP-848 has a new group epoch
CONSUMER_MEMBER: Final = (
    "member"  # a member of such a group: its own fields (generation 0), or its epoch and assignment
)
CONSUMER_STATE: Final = "state"  # other records of such a group
TIMELINE: Final = "timeline"  # an event of `__rota_group_timeline`
TIMELINE_DELETED: Final = "timeline-gone"
SKIPPED: Final = "skipped"

MEMBER: Final = (
    StructType()
    .add("member_id", StringType())
    .add("instance_id", StringType())
    .add("client_id", StringType())
    .add("client_host", StringType())
    .add("topics", ArrayType(StringType()))
    .add("partitions", IntegerType())
)
TIMELINE_EVENT: Final = (
    StructType()
    .add("sequence", LongType())
    .add("time_ms", LongType())
    .add("type", StringType())
    .add("trigger", StringType())
    .add("reason", StringType())
    .add("client_reason", StringType())
    .add("members", ArrayType(StringType()))
    .add("member_count", IntegerType())
    .add("operation", StringType())
    .add("error_code", IntegerType())
    .add("count", LongType())
    .add("duration_ms", LongType())
    .add("state", StringType())
    .add("broker", IntegerType())
)
EVENT: Final = (
    StructType()
    .add("kind", StringType())
    .add("group", StringType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("generation", IntegerType())
    .add("protocol", StringType())
    .add("members", ArrayType(MEMBER))
    .add("reason", StringType())
    .add("timeline", TIMELINE_EVENT)
)
_TIMES_MS: Final = (-62_135_596_800_000, 253_402_300_799_999)  # the years 1 to 9999
_ARROW: Final = to_arrow_type(EVENT)

Event = dict[str, Any]


def decode_events(topics: pa.Array, keys: pa.Array, values: pa.Array) -> pa.Array:
    """For arrow_udf: from columns of topics, keys and values to a column of EVENT."""
    columns = (column.to_pylist() for column in (topics, keys, values))
    return pa.array([decode_event(*record) for record in zip(*columns, strict=True)], _ARROW)


def decode_event(topic: str, key: bytes | None, value: bytes | None) -> Event:
    """The fields of EVENT for one record; the others are null. `topic` is `__rota_group_timeline`, or one with the
    records of `__consumer_offsets`."""
    if key is None:
        return _skipped("a record without a key")
    try:
        if topic == group_timeline.TOPIC:
            return _timeline(key, value)
        match records.decode_key(key):
            case records.OffsetCommitKey() as of:
                return _offset(of, value)
            case records.GroupMetadataKey() as group:
                return _group(group, value)
        if (consumer := consumer_records.decode_key(key)) is not None:
            return _of_consumer_group(consumer, value)
    except DecodeError as error:
        return _skipped(f"unreadable: {_reason(error)}")
    return _skipped(f"key of type {int.from_bytes(key[:2], 'big', signed=True)}")


def _offset(of: records.OffsetCommitKey, raw: bytes | None) -> Event:
    place: Event = {"group": of.group, "topic": of.topic, "partition": of.partition}
    if raw is None:
        return {"kind": FORGOTTEN, **place}
    return {"kind": COMMIT, **place, "offset": records.decode_value(records.OffsetCommitValue, raw).offset}


def _group(of: records.GroupMetadataKey, raw: bytes | None) -> Event:
    if raw is None:
        return {"kind": GROUP_DELETED, "group": of.group}
    value = records.decode_value(records.GroupMetadataValue, raw)
    is_consumer = value.protocol_type == PROTOCOL_TYPE
    return {
        "kind": GROUP,
        "group": of.group,
        "generation": value.generation,
        "protocol": value.protocol,
        "members": [_member(member, is_consumer=is_consumer) for member in value.members],
    }


def _of_consumer_group(key: Any, raw: bytes | None) -> Event:
    """A record of KIP-848."""
    value = None if raw is None else consumer_records.decode_value(key, raw)
    match value:
        case consumer_records.EpochValue():
            return {"kind": EPOCH, "group": key.group, "generation": value.epoch}
        case consumer_records.MemberValue():
            own = {name: getattr(value, name) for name in ("instance_id", "client_id", "client_host")}
            member = {"member_id": key.member_id, **own, "topics": list(value.subscribed_topic_names)}
            return {"kind": CONSUMER_MEMBER, "group": key.group, "generation": 0, "members": [member]}
        case consumer_records.CurrentAssignmentValue():
            count = sum(len(topic.partitions) for topic in value.assigned_partitions)
            member = {"member_id": key.member_id, "partitions": count}
            return {
                "kind": CONSUMER_MEMBER,
                "group": key.group,
                "generation": value.member_epoch,
                "members": [member],
            }
    return {"kind": CONSUMER_STATE, "group": key.group}


def _timeline(raw_key: bytes, raw: bytes | None) -> Event:
    key = group_timeline.decode_key(raw_key)
    if key is None:
        return _skipped("a key of the timeline of another version")
    if raw is None:
        return {"kind": TIMELINE_DELETED, "group": key.group}
    event = group_timeline.decode_value(raw)
    if not _TIMES_MS[0] <= event.time_ms <= _TIMES_MS[1]:
        return _skipped("an event at a time that no table can have")
    texts = {
        name: getattr(event, name) or None for name in ("trigger", "reason", "client_reason", "operation", "state")
    }
    numbers = {name: _known(getattr(event, name)) for name in ("count", "duration_ms", "member_count", "broker")}
    found = {
        "sequence": event.sequence,
        "time_ms": event.time_ms,
        "type": _type_name(event.type),
        "members": [member.instance_id or member.client_id or member.member_id for member in event.members],
        "error_code": event.error_code or None,
    }
    generation = _known(event.generation)
    return {"kind": TIMELINE, "group": key.group, "generation": generation, "timeline": {**found, **texts, **numbers}}


def _type_name(number: int) -> str:
    try:
        return group_timeline.EventType(number).name.lower().replace("_", "-")
    except ValueError:
        return f"type {number}"


def _known(number: int) -> int | None:
    return None if number == group_timeline.NONE else number


def _member(member: records.MemberMetadata, *, is_consumer: bool) -> Mapping[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "topics": _topics(member.subscription) if is_consumer else None,
        "partitions": _partitions(member.assignment) if is_consumer else None,
    }


def _topics(raw: bytes) -> list[str] | None:
    try:
        return list(decode_subscription(raw).topics)
    except DecodeError:
        return None


def _partitions(raw: bytes) -> int | None:
    """The number of assigned partitions; 0 before the leader has sent an assignment."""
    try:
        return sum(len(topic.partitions) for topic in decode_assignment(raw).assigned_partitions) if raw else 0
    except DecodeError:
        return None


def _skipped(reason: str) -> Event:
    return {"kind": SKIPPED, "reason": reason}


def _reason(error: DecodeError) -> str:
    """The reason without the details of the record, so that reasons can be counted."""
    return str(error).partition(":")[0][:80]
