"""The health rules on timelines of groups of the consumer protocol: what conversations with the machine leave."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import REBALANCE_MS
from tests.unit.coordinator.observe.consumer_life import ConsumerLife, of_one

from rota.coordinator.observe.finding import Code
from rota.protocol.errors import ErrorCode


def test_a_healthy_life_has_no_finding() -> None:
    life = of_one()
    life.live(10_000, "a-1").joins("b-1")
    life.live(60_000, "a-1", "b-1").leaves("b-1")
    life.live(10_000, "a-1").joins("b-2")
    life.live(60_000, "a-1", "b-2").leaves("b-2").leaves("a-1")
    assert life.found() == {}


def test_a_member_that_flaps() -> None:
    life = of_one()
    for number in range(3):
        life.live(5_000, "a-1").joins(f"b-{number}")
        life.live(10_000, "a-1", f"b-{number}").leaves(f"b-{number}")
    assert life.found()[Code.MEMBER_FLAPS].subject == "member b (10.0.0.2)"


def test_a_member_that_does_not_give_up_partitions_in_time() -> None:
    life = of_one(partitions=2)
    for number in range(2):
        slow = f"b-{number}"
        life.joins(slow, rebalance_ms=20_000)
        life.live(5_000, "a-1", slow)  # it has one of two partitions
        life.script.topics.delete("t")
        life.after(5_000).heartbeats("a-1").heartbeats(slow, revokes=False)
        for _ in range(4):
            life.after(5_000).heartbeats("a-1")
        assert slow not in life.script.group.members
        life.script.topics.set("t", 2)
        life.live(5_000, "a-1")
    found = life.found()
    assert found[Code.POLL_INTERVAL_EXCEEDED].subject == "member b (10.0.0.2)"
    assert "give up its partitions in time" in found[Code.POLL_INTERVAL_EXCEEDED].evidence[-1]
    assert Code.MEMBER_FLAPS not in found


def test_a_static_id_that_is_used_twice() -> None:
    life = ConsumerLife()
    life.joins("a-1", instance="i")
    assert life.joins("b-1", instance="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    life.live(55_000, "a-1")
    assert life.found() == {}
    found = life.live(5_000, "a-1").found()[Code.STATIC_ID_USED_TWICE]
    assert found.subject == "static member i"
    assert "(from 10.0.0.1, 10.0.0.2): the second one cannot join" in found.sentence


def test_a_static_member_that_was_killed_and_waits_for_the_end_of_its_session_is_no_fault() -> None:
    life = ConsumerLife()
    life.joins("a-1", instance="i")
    life.after(5_000)
    assert life.joins("a-2", instance="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    life.after(45_000)
    assert life.joins("a-2", instance="i") is ErrorCode.NONE
    assert life.live(60_000, "a-2").found() == {}


def test_a_fenced_static_member_that_goes_on() -> None:
    life = ConsumerLife()
    life.joins("a-1", instance="i")
    life.leaves("a-1", -2, instance="i")
    life.joins("b-1", instance="i")
    reply = life.script.heartbeat("a-1", 2, instance="i")
    assert reply.error is ErrorCode.FENCED_INSTANCE_ID
    assert "each one fences the other" in life.found()[Code.STATIC_ID_USED_TWICE].sentence


def test_a_member_that_is_slow_to_give_up_partitions() -> None:
    life = of_one()
    for number in range(2):
        life.joins(f"b-{number}")
        life.after(5_000).heartbeats("a-1", revokes=False).after(5_000).heartbeats("a-1", revokes=False)
        life.after(2_000).heartbeats("a-1", f"b-{number}").leaves(f"b-{number}")
        life.live(5_000, "a-1")
    found = life.found()[Code.SLOW_REVOCATION]
    assert found.sentence == "Member a (10.0.0.1) took up to 7.0 s to give up partitions."


def test_the_time_of_a_heartbeat_is_no_slowness() -> None:
    life = of_one(partitions=5)
    for number in range(4):
        life.joins(f"b{number}-1")
        life.live(30_000, "a-1", *(f"b{each}-1" for each in range(number + 1)))
    assert life.found() == {}


def test_an_assignor_that_the_classic_members_do_not_share() -> None:
    life = of_one()
    life.script.c_join("", fresh="c-1")
    answer = life.script.c_join("", fresh="d-1", protocols=(("sticky", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"),))
    assert answer is not None
    assert answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    sentence = life.found()[Code.ASSIGNOR_MISMATCH].sentence
    assert "it supports sticky; the group's classic members share range" in sentence


def test_more_members_than_partitions() -> None:
    life = of_one(partitions=1)
    life.joins("b-1")
    assert list(life.live(5_000, "a-1", "b-1").found()) == [Code.IDLE_MEMBERS]


def test_a_group_that_never_stabilizes() -> None:
    life = of_one()
    life.joins("b-1")
    for at in range(32):
        life.live(10_000, "a-1", "b-1")
        life.script.topics.set("t", 5 + at)
    found = life.live(5_000, "a-1", "b-1").found()
    assert list(found) == [Code.NEVER_STABLE]


def test_a_group_that_waits_for_one_member_names_it() -> None:
    life = ConsumerLife()
    life.joins("a-1", rebalance_ms=10 * REBALANCE_MS)
    life.joins("b-1")
    for _ in range(62):
        life.after(5_000).heartbeats("a-1", revokes=False).heartbeats("b-1")
    assert "member a (10.0.0.1) did not give up partitions yet" in life.found()[Code.NEVER_STABLE].sentence


def test_commits_that_are_refused() -> None:
    life = of_one()
    for _ in range(10):
        assert life.script.commit("a-1", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert life.found()[Code.COMMITS_REFUSED].count == 10


def test_a_successor_that_repeats_its_heartbeat_until_the_session_of_a_killed_member_ends_is_no_fault() -> None:
    life = ConsumerLife()
    life.joins("a-1", instance="i")
    for _ in range(7):  # a count that is noted only when the session ends
        assert life.after(5_000).joins("a-2", instance="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert life.after(10_000).joins("a-2", instance="i") is ErrorCode.NONE
    assert life.live(65_000, "a-2").found() == {}


def test_a_static_member_that_is_away_while_its_group_is_loaded_is_no_fault() -> None:
    life = ConsumerLife()
    life.joins("a-1", instance="i")
    life.joins("b-1")
    life.live(400_000, "a-1", "b-1").leaves("a-1", -2, instance="i")
    life.restarts().live(5_000, "b-1")
    life.joins("a-2", instance="i")
    assert life.live(5_000, "a-2", "b-1").found() == {}
