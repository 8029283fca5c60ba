"""Decoded messages and records as JSON. Pure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, Final

from rota.cli.secret_names import is_secret
from rota.protocol import consumer_group_records, group_timeline, offsets_records, transaction_records
from rota.protocol.consumer_group_records import (
    CurrentAssignmentKey,
    EpochKey,
    MemberKey,
    PartitionMetadataKey,
    RegularExpressionKey,
    TargetEpochKey,
    TargetMemberKey,
)
from rota.protocol.consumer_protocol import decode_assignment, decode_subscription
from rota.protocol.offsets_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from rota.protocol.wire import DecodeError

BYTES_SHOWN_MAX: Final = 64
SECRET_FIELDS: Final = frozenset({"auth_bytes", "salted_password"})  # SaslAuthenticate, AlterUserScramCredentials
CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
TRANSACTION_STATES: Final = (  # of the field transaction_status
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
# Kafka's names of the records without "key" and "value"
_CONSUMER_GROUP_KINDS: Final[dict[type[Any], str]] = {
    EpochKey: "consumer_group_metadata",
    PartitionMetadataKey: "consumer_group_partition_metadata",
    MemberKey: "consumer_group_member_metadata",
    TargetEpochKey: "consumer_group_target_assignment_metadata",
    TargetMemberKey: "consumer_group_target_assignment_member",
    CurrentAssignmentKey: "consumer_group_current_member_assignment",
    RegularExpressionKey: "consumer_group_regular_expression",
}
_EMBEDDED: Final = {
    "metadata": decode_subscription,
    "member_metadata": decode_subscription,
    "subscription": decode_subscription,
    "assignment": decode_assignment,
    "member_assignment": decode_assignment,
}


def plain(value: Any, name: str = "") -> Any:
    """Return a part of a message as JSON: bytes as hexadecimal text, subscriptions and assignments decoded.

    Of passwords, of tokens and of the values of secret configs only the length is shown.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value), name)
    if isinstance(value, tuple | list):
        return [plain(item, name) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        shown = (each.name for each in fields(value) if not each.name.startswith("_"))
        part = {each: plain(getattr(value, each), each) for each in shown}
        if isinstance(part.get("value"), str) and is_secret(str(part.get("name", ""))):
            part["value"] = f"({len(part['value'])} characters, hidden)"
        return part
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _bytes(data: bytes, name: str) -> Any:
    if name in SECRET_FIELDS:
        return f"({len(data)} bytes, hidden)"
    if name in _EMBEDDED and data:
        try:
            return plain(_EMBEDDED[name](data))
        except DecodeError:
            pass
    if len(data) > BYTES_SHOWN_MAX:
        return f"{data[:BYTES_SHOWN_MAX].hex()}… ({len(data)} bytes)"
    return data.hex()


def internal_record(topic: str, key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
    """Return a record of an internal topic with its kind; None for other topics, and for what cannot be decoded.

    The value is None for a tombstone.
    """
    if key is None:
        return None
    try:
        if topic == CONSUMER_OFFSETS:
            return _of_offsets(key, value)
        if topic == TRANSACTION_STATE:
            return _of_transactions(key, value)
        if topic == group_timeline.TOPIC:
            return _of_timeline(key, value)
    except DecodeError:
        return None
    return None


def _of_offsets(key: bytes, value: bytes | None) -> dict[str, Any] | None:
    decoded = offsets_records.decode_key(key)
    message: Any
    match decoded:
        case OffsetCommitKey():
            kind, message = "offset_commit", OffsetCommitValue
        case GroupMetadataKey():
            kind, message = "group_metadata", GroupMetadataValue
        case _:
            return _of_consumer_group(key, value)
    body = None if value is None else offsets_records.decode_value(message, value)
    return {"kind": kind, "key": plain(decoded), "value": plain(body)}


def _of_consumer_group(key: bytes, value: bytes | None) -> dict[str, Any] | None:
    """Return a record of a group of the consumer protocol (KIP-848)."""
    decoded = consumer_group_records.decode_key(key)
    if decoded is None:
        return None
    body = None if value is None else consumer_group_records.decode_value(decoded, value)
    return {"kind": _CONSUMER_GROUP_KINDS[type(decoded)], "key": plain(decoded), "value": plain(body)}


def _of_transactions(key: bytes, value: bytes | None) -> dict[str, Any] | None:
    transactional_id = transaction_records.decode_key(key)
    if transactional_id is None:
        return None
    body = None if value is None else plain(transaction_records.decode_value(value))
    if body is not None and 0 <= body["transaction_status"] < len(TRANSACTION_STATES):
        body["transaction_status"] = TRANSACTION_STATES[body["transaction_status"]]
    return {"kind": "transaction", "key": {"transactional_id": transactional_id}, "value": body}


def _of_timeline(key: bytes, value: bytes | None) -> dict[str, Any] | None:
    decoded = group_timeline.decode_key(key)
    if decoded is None:
        return None
    body = None if value is None else group_timeline.decode_value(value)
    return {"kind": "group_event", "key": plain(decoded), "value": plain(body)}
