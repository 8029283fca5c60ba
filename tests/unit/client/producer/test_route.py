"""Where a record goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.client.producer.kit import accumulator, put

from rota.client.errors import IllegalUse
from rota.client.network.metadata import TopicInfo
from rota.client.producer.partitioner import partition_of
from rota.client.producer.route import Route
from rota.client.types import PartitionInfo


def topic(*leaders: int, epoch: int = 0, topic_id: bytes = b"i" * 16) -> TopicInfo:
    partitions = {
        number: PartitionInfo("t", number, leader, epoch, (1,), (1,)) for number, leader in enumerate(leaders)
    }
    return TopicInfo("t", topic_id, is_internal=False, partitions=partitions)


def route(*leaders: int, own: Callable | None = None, uses_keys: bool = True, draws: tuple[int, ...] = ()) -> Route:
    answer = iter(draws)
    made = Route("t", accumulator(), own, uses_keys, lambda _: next(answer, 0))
    made.update(topic(*leaders), (1, 2))
    return made


def test_a_key_chooses_among_all_partitions_led_or_not() -> None:
    made = route(1, -1, 2, -1, 1)
    for number in range(20):
        key = b"key%d" % number
        assert made.choose(key, b"", None) is made.queues[partition_of(key, 5)]


def test_a_partition_is_taken_as_it_is_given() -> None:
    assert route(1, -1).choose(b"key", b"", 1).partition.partition == 1


def test_keys_may_be_ignored() -> None:
    made = route(1, 1, uses_keys=False)
    assert made.choose(b"key", b"", None) is made.queue


def test_a_custom_partitioner_gets_topic_key_value_and_partitions() -> None:
    reported = []
    made = route(1, 1, 1, own=lambda *given: reported.append(given) or 2)
    assert made.choose(b"k", b"v", None).partition.partition == 2
    assert reported == [("t", b"k", b"v", (0, 1, 2))]


@pytest.mark.parametrize("chosen", [3, -1, "1", None])
def test_a_partitioner_must_give_a_partition(chosen: object) -> None:
    with pytest.raises(IllegalUse, match="partitions 0 to 2"):
        route(1, 1, 1, own=lambda *_: chosen).choose(None, b"", None)


def test_without_a_key_the_partition_changes_after_batch_size_bytes() -> None:
    of = accumulator()
    answer = iter([0, 1])
    made = Route("t", of, None, True, lambda _: next(answer))
    made.update(topic(1, 1), (1, 2))
    before = made.queue
    made.batch = put(of, before, b"x" * 140)
    assert made.next_queue(0) is made.queues[1]
    assert before.open is None


def test_a_sticky_partition_that_loses_its_leader_is_left() -> None:
    made = route(1, 1, draws=(0, 0))
    made.update(topic(-1, 1, epoch=1), (1, 2))
    assert made.queue is made.queues[1]


def test_a_leader_without_an_address_is_none() -> None:
    made = route(1, 9)
    assert [queue.leader for queue in made.queues] == [1, None]


def test_partitions_may_be_added() -> None:
    made = route(1)
    first = made.queues[0]
    made.update(topic(1, 2), (1, 2))
    assert made.queues[0] is first
    assert made.numbers == (0, 1)


def test_a_recreated_topic_starts_with_its_own_leader_epoch() -> None:
    made = route(1)
    made.update(topic(1, epoch=8), (1, 2))
    made.update(topic(2, epoch=0), (1, 2))
    assert made.queues[0].leader == 1
    made.update(topic(2, epoch=0, topic_id=b"j" * 16), (1, 2))
    assert made.queues[0].leader == 2


def test_a_deleted_topic_has_no_leaders_and_keeps_its_partitions() -> None:
    made = route(1, 1)
    made.update(TopicInfo("t", b"i" * 16, is_internal=False, partitions={}, error=3), (1, 2))
    assert made.numbers == (0, 1)
    assert [queue.leader for queue in made.queues] == [None, None]
