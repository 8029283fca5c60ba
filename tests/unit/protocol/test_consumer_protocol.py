"""Byte vectors are what Apache Kafka's own consumer and kafka-python put on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.consumer_protocol_assignment.v3 import data as kio_assignment
from kio.schema.consumer_protocol_subscription.v3 import data as kio_subscription
from kio.serial import entity_reader

from rota.protocol.consumer_protocol import (
    VERSION_MAX,
    Assignment,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from rota.protocol.wire import DecodeError

SUBSCRIPTION_0 = bytes.fromhex("00000000000100077769726576656300000000")
ASSIGNMENT_0 = bytes.fromhex("000000000001000777697265766563000000020000000000000001" + "00000000")
FULL = Subscription(
    topics=("a", "b"),
    user_data=b"u",
    owned_partitions=(TopicPartition(topic="a", partitions=(0, 2)),),
    generation_id=5,
    rack_id="r1",
)


def test_bytes_of_real_consumers_survive_decode_and_encode() -> None:
    subscription = Subscription(topics=("wirevec",), user_data=b"")
    assert decode_subscription(SUBSCRIPTION_0) == subscription
    assert encode_subscription(subscription, 0) == SUBSCRIPTION_0
    assignment = Assignment(assigned_partitions=(TopicPartition(topic="wirevec", partitions=(0, 1)),), user_data=b"")
    assert decode_assignment(ASSIGNMENT_0) == assignment
    assert encode_assignment(assignment, 0) == ASSIGNMENT_0


@pytest.mark.parametrize("version", range(VERSION_MAX + 1))
def test_each_version_has_its_own_fields(version: int) -> None:
    found = decode_subscription(encode_subscription(FULL, version))
    assert (found.topics, found.user_data) == (FULL.topics, FULL.user_data)
    assert found.owned_partitions == (FULL.owned_partitions if version >= 1 else ())
    assert found.generation_id == (5 if version >= 2 else -1)
    assert found.rack_id == ("r1" if version >= 3 else None)


def test_kio_reads_the_newest_the_same() -> None:
    theirs, _ = entity_reader(kio_subscription.ConsumerProtocolSubscription)(encode_subscription(FULL)[2:], 0)
    assert (theirs.topics, theirs.generation_id, theirs.rack_id) == (FULL.topics, 5, "r1")
    assignment = Assignment(assigned_partitions=FULL.owned_partitions)
    theirs, _ = entity_reader(kio_assignment.ConsumerProtocolAssignment)(encode_assignment(assignment)[2:], 0)
    assert theirs.assigned_partitions[0].partitions == (0, 2)


def test_a_version_of_the_future_is_read_as_our_newest() -> None:
    raw = b"\x00\x09" + encode_subscription(FULL)[2:] + b"fields of the future"
    assert decode_subscription(raw) == FULL


@pytest.mark.parametrize("raw", [b"", b"\x00", b"\xff\xff", b"\x00\x00", b"\x00\x01\x00\x00\x00\x01"])
def test_invalid_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_subscription(raw)
    with pytest.raises(DecodeError):
        decode_assignment(raw)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_random_bytes_are_read_or_refused(raw: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(raw)
        except DecodeError:
            continue
