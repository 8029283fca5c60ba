"""Records of `__consumer_offsets` as rows: what was committed, which groups have which members. Pure.

Laws
    A record is one row, whatever is in it: what cannot be read, or is of a kind that is not known here, is a row of
    kind `skipped` with a reason; nothing raises.
    A member's bytes are looked into only where its group speaks the consumer protocol; what is wrong there leaves the
    member with unknown topics and partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructType

from rota.protocol import offsets_records as records
from rota.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from rota.protocol.wire import DecodeError

COMMIT: Final = "commit"  # an offset was committed
FORGOTTEN: Final = "forgotten"  # it was taken back: expired, deleted, or its topic was
GROUP: Final = "group"  # a group has a generation
GROUP_GONE: Final = "gone"
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
)
_ARROW: Final = to_arrow_type(EVENT, timezone="UTC")

Event = dict[str, Any]


def decoded(keys: pa.Array, values: pa.Array) -> pa.Array:
    """For arrow_udf: columns of keys and values in, a column of EVENT out."""
    return pa.array([event(*pair) for pair in zip(keys.to_pylist(), values.to_pylist(), strict=True)], _ARROW)


def event(key: bytes | None, value: bytes | None) -> Event:
    """One record, as far as its bytes tell: fields of EVENT by name."""
    if key is None:
        return _skipped("a record without a key")
    try:
        match records.decode_key(key):
            case records.OffsetCommitKey() as of:
                return _offset(of, value)
            case records.GroupMetadataKey() as group:
                return _group(group, value)
    except DecodeError as wrong:
        return _skipped(f"unreadable: {_short(wrong)}")
    return _skipped(f"key of type {int.from_bytes(key[:2], 'big', signed=True)}")


def _offset(of: records.OffsetCommitKey, raw: bytes | None) -> Event:
    place: Event = {"group": of.group, "topic": of.topic, "partition": of.partition}
    if raw is None:
        return {"kind": FORGOTTEN, **place}
    return {"kind": COMMIT, **place, "offset": records.decode_value(records.OffsetCommitValue, raw).offset}


def _group(of: records.GroupMetadataKey, raw: bytes | None) -> Event:
    if raw is None:
        return {"kind": GROUP_GONE, "group": of.group}
    value = records.decode_value(records.GroupMetadataValue, raw)
    speaks = value.protocol_type == PROTOCOL_TYPE
    return {
        "kind": GROUP,
        "group": of.group,
        "generation": value.generation,
        "protocol": value.protocol,
        "members": [_member(one, speaks=speaks) for one in value.members],
    }


def _member(one: records.MemberMetadata, *, speaks: bool) -> Mapping[str, Any]:
    return {
        "member_id": one.member_id,
        "instance_id": one.group_instance_id,
        "client_id": one.client_id,
        "client_host": one.client_host,
        "topics": _topics(one.subscription) if speaks else None,
        "partitions": _partitions(one.assignment) if speaks else None,
    }


def _topics(raw: bytes) -> list[str] | None:
    try:
        return list(decode_subscription(raw).topics)
    except DecodeError:
        return None


def _partitions(raw: bytes) -> int | None:
    """How many are assigned; none before the leader has sent an assignment."""
    try:
        return sum(len(one.partitions) for one in decode_assignment(raw).assigned_partitions) if raw else 0
    except DecodeError:
        return None


def _skipped(reason: str) -> Event:
    return {"kind": SKIPPED, "reason": reason}


def _short(wrong: DecodeError) -> str:
    """Without what differs from record to record, so that reasons can be counted."""
    return str(wrong).partition(":")[0][:80]
