import pickle

import pytest

from rota.client import types
from rota.client.types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    RecordMetadata,
    TimestampType,
    TopicPartition,
)


def test_a_partition_is_a_pair_and_reads_as_one_word() -> None:
    topic, partition = TopicPartition("events", 3)
    assert (topic, partition) == ("events", 3)
    assert str(TopicPartition("events", 3)) == "events-3"
    assert {TopicPartition("a", 0): 1}[TopicPartition("a", 0)] == 1
    assert min([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]) == ("a", 9)


def test_unknown_is_minus_one_and_never_zero() -> None:
    assert OffsetAndMetadata(5).leader_epoch == OffsetAndTimestamp(5, 1).leader_epoch == -1
    assert GroupMetadata("g").generation_id == -1
    assert GroupMetadata("g").member_id == ""


def test_timestamps_have_the_numbers_of_the_wire() -> None:
    assert (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME) == (0, 1)
    assert RecordMetadata("t", 0, 1, 2).timestamp_type is TimestampType.CREATE_TIME


@pytest.mark.parametrize(
    "value",
    [
        TopicPartition("t", 1),
        OffsetAndMetadata(1, "note", 2),
        OffsetAndTimestamp(1, 2, 3),
        RecordMetadata("t", 0, 1, 2),
        PartitionInfo("t", 0, 1, 2, (1, 2), (1,)),
        GroupMetadata("g", 1, "m", "i"),
    ],
)
def test_values_are_equal_hashable_and_travel(value: object) -> None:
    copy = pickle.loads(pickle.dumps(value))
    assert copy == value
    assert hash(copy) == hash(value)


def test_all_public_names_exist() -> None:
    assert all(hasattr(types, name) for name in types.__all__)
