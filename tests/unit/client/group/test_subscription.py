"""What a member wants to read, and how JoinGroup says it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.group.script import metadata, named

from rota.client.group.subscription import (
    decoded_subscription,
    difference,
    encoded_subscription,
    flat,
    grouped,
    is_subscribed,
    snapshot,
    topics_of,
)
from rota.client.types import TopicPartition
from rota.protocol.wire import DecodeError

PARTITIONS = st.sets(st.builds(TopicPartition, st.sampled_from("tuv"), st.integers(0, 5)))


def test_names_stay_as_they_are() -> None:
    subscribed = frozenset({"t", "missing"})
    assert topics_of(subscribed, metadata(t=1, u=1), exclude_internal=True) == subscribed
    assert is_subscribed(subscribed, "missing")
    assert not is_subscribed(subscribed, "u")


def test_a_pattern_matches_whole_names_of_topics_with_partitions() -> None:
    known = metadata(t=1, tt=1, u=1, t2=0)
    assert topics_of(re.compile("t.*"), known, exclude_internal=True) == {"t", "tt"}
    assert topics_of(re.compile("t"), known, exclude_internal=True) == {"t"}
    assert is_subscribed(re.compile("t.?"), "tx")
    assert not is_subscribed(re.compile("t"), "tx")


@pytest.mark.parametrize(("exclude", "found"), [(True, {"t"}), (False, {"t", "__offsets"})])
def test_internal_topics_match_when_they_may(exclude: bool, found: set[str]) -> None:
    known = metadata(t=1, __offsets=1)
    assert topics_of(re.compile(".*"), known, exclude_internal=exclude) == found


@given(PARTITIONS)
def test_partitions_are_grouped_in_order(partitions: set[TopicPartition]) -> None:
    assert list(flat(grouped(partitions))) == sorted(partitions)


@given(PARTITIONS, st.integers(-1, 9), st.one_of(st.none(), st.binary()))
def test_a_subscription_survives_encode_and_decode(
    owned: set[TopicPartition], generation: int, user_data: bytes | None
) -> None:
    decoded = decoded_subscription(encoded_subscription(("u", "t"), user_data, owned, generation, ""), "i")
    assert (decoded.topics, decoded.owned, decoded.generation_id) == (("t", "u"), tuple(sorted(owned)), generation)
    assert (decoded.user_data, decoded.group_instance_id, decoded.rack) == (user_data, "i", None)


def test_the_bytes_are_those_of_javas_consumer() -> None:
    expected = (
        b"\0\3"  # version 3
        b"\0\0\0\1\0\1t"  # topics
        b"\xff\xff\xff\xff"  # no user data
        b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1"  # owned: t-0, t-1
        b"\0\0\0\7"  # of generation 7
        b"\0\1r"  # rack
    )
    assert encoded_subscription(("t",), None, named("t-1", "t-0"), 7, "r") == expected


def test_an_old_subscription_is_heard() -> None:
    assert decoded_subscription(b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", None).topics == ("t",)


def test_rubbish_is_no_subscription() -> None:
    with pytest.raises(DecodeError):
        decoded_subscription(b"\0\3\0", None)


def test_the_difference_of_snapshots_names_partition_counts_and_topics() -> None:
    before = snapshot({"t", "u", "v"}, metadata(t=1, u=2))
    assert before == {"t": (0,), "u": (0, 1), "v": None}
    now = snapshot(before, metadata(t=2, v=1, other=4))
    assert difference(before, now) == (
        "cached metadata has changed: t from 1 partitions to 2 partitions; u from 2 partitions to unknown; "
        "v from unknown to 1 partitions"
    )
