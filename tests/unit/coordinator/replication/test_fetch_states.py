from __future__ import annotations

from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replication.fetch_session import Key
from rota.coordinator.replication.fetch_states import PAUSE_MS_MIN, FetchStates

PAUSE_MS_MAX = 100


def partition(index: int, leader_epoch: int = 0, leader: int = 1) -> Partition:
    placed = PartitionState(index=index, leader=leader, replicas=(1, 2), isr=(1, 2), leader_epoch=leader_epoch)
    return Partition("t", bytes(16), index, leader_epoch, MemoryLog(), broker_id=2, placed=placed)


def key(index: int) -> Key:
    return bytes(16), index


def make_followed(*indexes: int) -> FetchStates:
    followed = FetchStates(PAUSE_MS_MAX)
    for index in indexes:
        followed.follow(partition(index), 1)
    return followed


def test_a_request_names_the_changes_since_the_last_request() -> None:
    followed = make_followed(0, 1)
    assert list(followed.take_changes()[0]) == [key(0), key(1)]
    assert not followed.has_changes
    followed.add_to_request(key(1))
    followed.add_to_request(key(7))
    followed.unfollow(key(0))
    changed, removed = followed.take_changes()
    assert (list(changed), removed) == ([key(1)], [key(0)])
    assert (len(followed), key(0) in followed, key(1) in followed) == (1, False, True)


def test_a_new_session_names_everything_and_forgets_nothing() -> None:
    followed = make_followed(0, 1, 2)
    followed.take_changes()
    followed.unfollow(key(0))
    followed.pause(key(1))
    followed.begin_anew()
    assert list(followed.all_active()) == [key(2)]
    assert not followed.has_changes


def test_pauses_double_until_a_fetch_succeeds() -> None:
    followed = make_followed(0)
    pauses = []
    for _ in range(5):
        pauses.append(followed.pause(key(0)))
        assert not followed.has_active
        followed.resume(key(0))
    assert pauses == [PAUSE_MS_MIN, 2 * PAUSE_MS_MIN, 4 * PAUSE_MS_MIN, PAUSE_MS_MAX, PAUSE_MS_MAX]
    followed.succeeded(key(0))
    assert followed.pause(key(0)) == PAUSE_MS_MIN


def test_a_partition_that_pauses_is_left_out_of_the_session_and_its_answers_do_not_count() -> None:
    followed = make_followed(0, 1)
    followed.take_changes()
    followed.pause(key(0))
    assert followed.take_changes() == ({}, [key(0)])
    assert followed.answered(key(0), 1) is None
    assert followed.answered(key(1), 1) is not None
    followed.resume(key(0))
    assert list(followed.take_changes()[0]) == [key(0)]


def test_a_response_is_used_only_if_it_was_requested_in_the_leader_epoch_of_the_partition() -> None:
    """RF1. Between the two requests another broker may have led, and this log may have been cut."""
    followed, led_partition = FetchStates(PAUSE_MS_MAX), partition(0)
    assert followed.follow(led_partition, 3)
    assert not followed.follow(led_partition, 9)
    assert [followed.answered(key(0), number) for number in (2, 3)] == [None, led_partition]
    followed.pause(key(0))
    led_partition.apply(PartitionState(index=0, leader=3, replicas=(1, 2), isr=(1, 2), leader_epoch=4), 0)
    assert followed.follow(led_partition, 5)
    assert [followed.answered(key(0), number) for number in (4, 5)] == [None, led_partition]
    assert followed.pause(key(0)) == PAUSE_MS_MIN


def test_partitions_that_are_offline_or_led_here_are_not_fetched() -> None:
    followed, offline, led = FetchStates(PAUSE_MS_MAX), partition(0), partition(1)
    for replica in (offline, led):
        followed.follow(replica, 1)
    assert followed.unfetchable() == []
    offline.fail("the disk is gone")
    led.apply(PartitionState(index=1, leader=2, replicas=(1, 2), isr=(1, 2), leader_epoch=1), 0)
    assert followed.unfetchable() == [key(0), key(1)]
    assert followed.answered(key(0), 1) is followed.answered(key(1), 1) is None


def test_a_partition_that_is_held_back_is_left_out_until_it_resumes() -> None:
    followed = make_followed(0, 1)
    followed.hold_back(key(0))
    assert list(followed.take_changes()[0]) == [key(1)]
    followed.resume(key(0))
    assert list(followed.take_changes()[0]) == [key(0)]
    assert followed.pause(key(0)) == PAUSE_MS_MIN  # it did not fail


def test_a_partition_lags_until_an_answer_shows_that_it_has_what_is_committed() -> None:
    followed = make_followed(0, 1)
    followed.note_lag(key(1), 0)
    assert [each for each, _ in followed.lagging()] == [key(0)]
    followed.note_lag(key(1), 5)
    followed.note_lag(key(0), -1)
    assert [each for each, _ in followed.lagging()] == [key(1)]
    followed.follow(partition(0, leader_epoch=1), 2)
    assert {each for each, _ in followed.lagging()} == {key(0), key(1)}
