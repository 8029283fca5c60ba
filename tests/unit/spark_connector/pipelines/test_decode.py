"""What the bytes of __consumer_offsets tell: those that Apache Kafka wrote, those of ours, and garbage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.architecture.test_tidy import ROOT

from rota.protocol import consumer_group_records, group_timeline
from rota.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from rota.protocol.offsets_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from rota.spark_connector.pipelines.decode import EVENT, decode_event, decode_events

KAFKA = Path(ROOT, "tests", "data", "kafka-4.3.1-consumer-offsets.jsonl")
OFFSETS = "__consumer_offsets"
COMMIT_KEY = encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
GROUP_KEY = encode_key(GroupMetadataKey(group="g"))


def member(subscription: bytes, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id="m-1",
        group_instance_id="i",
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout=1,
        subscription=subscription,
        assignment=assignment,
    )


def group(*members: MemberMetadata, kind: str = "consumer") -> bytes:
    value = GroupMetadataValue(protocol_type=kind, generation=7, protocol="range", leader="m-1", members=members)
    return encode_value(value, 3)


def from_kafka() -> list[dict[str, object]]:
    rows = [json.loads(line) for line in KAFKA.read_text().splitlines()]
    return [
        decode_event(OFFSETS, bytes.fromhex(row["key"]), row["value"] and bytes.fromhex(row["value"])) for row in rows
    ]


def test_records_of_apache_kafka_are_decoded() -> None:
    found: list = from_kafka()
    assert found[0] == {"kind": "commit", "group": "group-fe3f27b44e", "topic": "topic-cebe9dae22"} | {
        "partition": 0,
        "offset": 7,
    }
    assert {key: found[2][key] for key in ("kind", "group", "generation", "protocol")} == {
        "kind": "group",
        "group": "group-d2c47e2146",
        "generation": 1,
        "protocol": "range",
    }
    (only,) = found[2]["members"]
    assert only["topics"] == ["topic-7649c81625"]
    assert only["partitions"] == 1
    assert only["client_id"] == "rota"
    assert {"kind": "gone", "group": "group-8e093c6f08"} in found


def test_a_group_without_a_generation_has_no_members() -> None:
    assert from_kafka()[1] == {
        "kind": "group",
        "group": "group-d2c47e2146",
        "generation": 0,
        "protocol": None,
        "members": [],
    }


def test_records_of_a_group_of_the_consumer_protocol_are_decoded() -> None:
    found = from_kafka()
    assert not [item for item in found if item["kind"] == "skipped"]
    epochs = [item["generation"] for item in found if item["kind"] == "epoch"]
    assert epochs == sorted(epochs) != []
    members = [(item["generation"], *item["members"]) for item in found if item["kind"] == "member"]
    own = next(member for epoch, member in members if epoch == 0)
    assert own["client_host"].startswith("/127.")
    assert own["client_id"]
    assert own["topics"]
    assigned = [(epoch, member["partitions"]) for epoch, member in members if epoch > 0]
    assert max(count for _, count in assigned) > 0
    assert {member["member_id"] for _, member in members} == {own["member_id"]} or len(members) > 2


def test_the_end_of_a_member_is_no_row_of_a_table() -> None:
    deleted = consumer_group_records.encode_key(consumer_group_records.MemberKey(group="g", member_id="m"))
    assert decode_event(OFFSETS, deleted, None) == {"kind": "state", "group": "g"}
    epoch = consumer_group_records.encode_key(consumer_group_records.EpochKey(group="g"))
    assert decode_event(OFFSETS, epoch, b"\x00\x63")["reason"] == "unreadable: EpochValue of version 99"


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_commit_is_read(version: int) -> None:
    raw = encode_value(OffsetCommitValue(offset=9, metadata="", commit_timestamp=1), version)
    assert decode_event(OFFSETS, COMMIT_KEY, raw)["offset"] == 9


def test_an_offset_may_be_taken_back() -> None:
    assert decode_event(OFFSETS, COMMIT_KEY, None) == {"kind": "forgotten", "group": "g", "topic": "t", "partition": 3}


def test_a_member_has_its_topics_and_its_partition_count() -> None:
    subscription = encode_subscription(Subscription(topics=("a", "b")))
    assigned = (TopicPartition(topic="a", partitions=(0, 1)), TopicPartition(topic="b", partitions=(0,)))
    raw = group(member(subscription, encode_assignment(Assignment(assigned_partitions=assigned))))
    (item,) = decode_event(OFFSETS, GROUP_KEY, raw)["members"]
    assert item == {
        "member_id": "m-1",
        "instance_id": "i",
        "client_id": "c",
        "client_host": "/127.0.0.1",
        "topics": ["a", "b"],
        "partitions": 3,
    }


def test_a_member_of_another_protocol_has_no_topics_and_partitions() -> None:
    (item,) = decode_event(OFFSETS, GROUP_KEY, group(member(b"\x00", b"\x00")))["members"]
    assert (item["member_id"], item["topics"], item["partitions"]) == ("m-1", None, None)
    (two,) = decode_event(OFFSETS, GROUP_KEY, group(member(b"json", b"json"), kind="connect"))["members"]
    assert (two["topics"], two["partitions"]) == (None, None)


def test_before_the_assignment_a_member_has_none() -> None:
    (item,) = decode_event(OFFSETS, GROUP_KEY, group(member(encode_subscription(Subscription(topics=("a",))), b"")))[
        "members"
    ]
    assert item["partitions"] == 0


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"", "without a key"),
        (b"\x00", b"", "unreadable"),
        (COMMIT_KEY[:-1], b"", "unreadable"),
        (COMMIT_KEY, b"\x00\x63", "OffsetCommitValue of version 99"),
        (GROUP_KEY, b"\x00\x63", "GroupMetadataValue of version 99"),
        (b"\xff\xff", None, "key of type -1"),
        (b"\x00\x63rest", b"?", "key of type 99"),
    ],
)
def test_unreadable_records_are_skipped_with_a_reason(key: bytes | None, value: bytes | None, reason: str) -> None:
    answer = decode_event(OFFSETS, key, value)
    assert answer["kind"] == "skipped"
    assert reason in answer["reason"]


@given(
    st.none() | st.binary(max_size=40) | st.binary(max_size=20).map(lambda rest: b"\x00\x02" + rest),
    st.none() | st.binary(max_size=80) | st.binary(max_size=80).map(lambda rest: b"\x00\x03" + rest),
)
def test_no_bytes_raise(key: bytes | None, value: bytes | None) -> None:
    for item in (key, COMMIT_KEY, GROUP_KEY):
        assert decode_event(OFFSETS, item, value)["kind"] in ("commit", "forgotten", "group", "gone", "skipped")


def test_columns_become_a_column_of_events() -> None:
    keys, values = pa.array([COMMIT_KEY, None, GROUP_KEY]), pa.array([None, b"", group()])
    rows = decode_events(pa.array([OFFSETS] * len(keys)), keys, values).to_pylist()
    assert [row["kind"] for row in rows] == ["forgotten", "skipped", "group"]
    assert list(rows[0]) == EVENT.names
    assert len(decode_events(pa.array([], pa.string()), pa.array([], pa.binary()), pa.array([], pa.binary()))) == 0


def test_events_of_a_timeline_are_decoded() -> None:
    """The same key in the topic of the offsets is the key of an offset."""
    key = group_timeline.encode_key(group_timeline.TimelineKey(group="g", slot=4))
    members = (
        group_timeline.EventMember(member_id="m-1", client_id="c"),
        group_timeline.EventMember(member_id="m-2", instance_id="static"),
    )
    event = group_timeline.GroupEvent(
        sequence=4,
        time_ms=1000,
        type=group_timeline.EventType.REBALANCE_STARTED,
        generation=2,
        trigger="member-left",
        reason="left",
        client_reason="deploy",
        members=members,
    )
    found = decode_event(group_timeline.TOPIC, key, group_timeline.encode_value(event))
    assert (found["kind"], found["group"], found["generation"]) == ("timeline", "g", 2)
    expected = {"sequence": 4, "type": "rebalance-started", "members": ["c", "static"], "client_reason": "deploy"}
    expected |= {"count": None, "error_code": None, "state": None}
    assert {name: found["timeline"][name] for name in expected} == expected
    assert set(found["timeline"]) == set(EVENT["timeline"].dataType.names)
    newer = group_timeline.encode_value(replace(event, type=99))
    assert decode_event(group_timeline.TOPIC, key, newer)["timeline"]["type"] == "type 99"
    assert decode_event(group_timeline.TOPIC, key, None) == {"kind": "timeline-gone", "group": "g"}
    assert decode_event(group_timeline.TOPIC, b"\0\x09", b"")["reason"] == "a key of the timeline of another version"
    assert decode_event(group_timeline.TOPIC, key, b"\0")["reason"].startswith("unreadable")
    assert decode_event(OFFSETS, key, None)["kind"] != "timeline-gone"


@pytest.mark.parametrize("time_ms", [-(1 << 63), -62_135_596_800_001, 253_402_300_800_000, (1 << 63) - 1])
def test_an_event_at_a_time_that_no_table_can_have_is_skipped(time_ms: int) -> None:
    """Spark ends a query whose milliseconds do not fit into a timestamp; Python's calendar has the years 1 to 9999."""
    key = group_timeline.encode_key(group_timeline.TimelineKey(group="g", slot=0))
    event = group_timeline.GroupEvent(sequence=0, time_ms=time_ms, type=group_timeline.EventType.REBALANCE_STARTED)
    found = decode_event(group_timeline.TOPIC, key, group_timeline.encode_value(event))
    assert found == {"kind": "skipped", "reason": "an event at a time that no table can have"}
