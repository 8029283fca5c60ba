"""Byte vectors are what Kafka's own assignors write (tests/interop/test_assignors_of_java.py asks them)."""

from __future__ import annotations

import pytest
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1 as Aiokafka
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData as KafkaPython

from rota.protocol.consumer_protocol import TopicPartition
from rota.protocol.sticky_user_data import (
    StickyUserData,
    decode_cooperative,
    decode_sticky,
    encode_cooperative,
    encode_sticky,
)

V0 = bytes.fromhex("00000001000174000000020000000000000003")
V1 = V0 + bytes.fromhex("00000009")
HAD = (TopicPartition(topic="t", partitions=(0, 3)),)
GARBAGE = [b"", b"\x00", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x00\x00\x00\x01\x00", V0[:-1]]


def test_version_1() -> None:
    assert encode_sticky(StickyUserData(previous_assignment=HAD, generation=9)) == V1
    assert decode_sticky(V1) == StickyUserData(previous_assignment=HAD, generation=9)


def test_version_0_has_no_generation() -> None:
    assert encode_sticky(StickyUserData(previous_assignment=HAD), 0) == V0
    assert decode_sticky(V0) == StickyUserData(previous_assignment=HAD, generation=-1)


def test_trailing_bytes_are_ignored() -> None:
    assert decode_sticky(V1 + b"more") == decode_sticky(V1)


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_nothing(garbage: bytes) -> None:
    assert decode_sticky(garbage) is None


def test_the_generation_alone() -> None:
    assert encode_cooperative(-1) == b"\xff\xff\xff\xff"
    assert decode_cooperative(encode_cooperative(7)) == 7


def test_the_generation_of_librdkafkas_user_data() -> None:
    assert decode_cooperative(V1) == 9


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"\x00\x00\x00\x07\x00", V0[:-1]])
def test_garbage_is_no_generation(garbage: bytes) -> None:
    assert decode_cooperative(garbage) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_nothing(raw: bytes) -> None:
    assert isinstance(decode_sticky(raw), StickyUserData | None)
    assert isinstance(decode_cooperative(raw), int | None)


PARTITIONS = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
TOPICS = st.lists(st.builds(TopicPartition, topic=st.text("abc.-_", min_size=1), partitions=PARTITIONS), max_size=4)


@given(TOPICS.map(tuple), st.integers(-1, 2**31 - 1))
def test_written_user_data_is_read_back(had: tuple[TopicPartition, ...], generation: int) -> None:
    data = StickyUserData(previous_assignment=had, generation=generation)
    assert decode_sticky(encode_sticky(data)) == data


def test_aiokafka_writes_the_same() -> None:
    assert Aiokafka([("t", [0, 3])], 9).encode() == V1


def test_the_version_prefix_of_kafka_python_is_not_readable() -> None:
    assert KafkaPython([("t", [0, 3])], 9).encode() == b"\x00\x01" + V1
    assert decode_sticky(b"\x00\x01" + V1) is None
