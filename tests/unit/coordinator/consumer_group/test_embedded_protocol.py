"""Subscriptions and assignments of classic members, in terms of topic ids."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.mixed_script import assignment, partitions, read, subscription
from tests.unit.coordinator.consumer_group.script import TopicsInMemory, id_of

from rota.coordinator.consumer_group.embedded_protocol import owned_partitions, read_assignment, write_assignment
from rota.protocol.consumer_protocol import Subscription

TOPICS = TopicsInMemory(t=4)


def test_topics_that_do_not_exist_are_left_out() -> None:
    decoded = Subscription(owned_partitions=partitions({"t": (1, 0), "x": (0,)}))
    assert owned_partitions(decoded, TOPICS) == ((id_of("t"), (1, 0)),)
    assert read_assignment(assignment({"t": (0, 2), "x": (0,)}), TOPICS) == ({id_of("t"): {0, 2}}, False)
    written = write_assignment({id_of("t"): (2, 1), id_of("x"): (0,)}, TOPICS, subscription("t"))
    assert read(written) == {"t": {1, 2}}


def test_no_assignment_is_an_empty_one() -> None:
    assert read_assignment(b"", TOPICS) == ({}, False)


def test_data_of_an_assignor_is_seen() -> None:
    assert read_assignment(assignment({}, b"x"), TOPICS)[1]
    assert not read_assignment(assignment({}, b""), TOPICS)[1]


@pytest.mark.parametrize(("subscribed", "version"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3), (-1, 0)])
def test_an_assignment_has_the_version_of_the_subscription(subscribed: int, version: int) -> None:
    raw = subscribed.to_bytes(2, "big", signed=True) + subscription("t")[2:]
    assert write_assignment({}, TOPICS, raw)[:2] == version.to_bytes(2, "big")
    assert write_assignment({}, TOPICS, b"")[:2] == b"\0\0"
