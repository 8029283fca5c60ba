"""Conversations that Apache Kafka's own tests of its coordinator have, and that no other file here has.

docs/KIP848.md says which test of Kafka's is which one here.
"""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.talk import Talk, TopicsInMemory, durable, id_of, named
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.member import LEFT_EPOCH, Member, MemberState
from rota.coordinator.consumer_group.regexes import REFRESH_MS_MIN
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.state import FIRST_EPOCH, NO_EPOCH, ConsumerGroup, ConsumerGroupState
from rota.protocol.errors import ErrorCode

STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def full(talk: Talk, member: str, epoch: int, *owned: int, **more: object) -> object:
    """Send a heartbeat that says everything, as a member does that may have missed an answer."""
    parts = {"t": owned} if owned else {}
    return talk.beat(member, epoch, names=("t",), owned=parts, rebalance_ms=60_000, **more)  # type: ignore[arg-type]


# ---- heartbeats that come twice


def in_state(state: MemberState) -> tuple[Talk, str, int, tuple[int, ...], set[int]]:
    """A group with a member in that state: the member, its epoch, what it owns, what it is to have."""
    if state is STABLE:
        return two_members(), "a", 3, (0, 1), {0, 1}
    talk = Talk()
    talk.join("a", "t")
    talk.join("b", "t")
    talk.beat("a", 2, owned={"t": (0, 1, 2, 3)})
    if state is UNREVOKED:
        return talk, "a", 2, (0, 1, 2, 3), {0, 1}
    return talk, "b", 3, (), set()


@pytest.mark.parametrize("state", [STABLE, UNREVOKED, UNRELEASED])
def test_a_full_heartbeat_that_comes_twice_is_answered_twice_and_writes_nothing(state: MemberState) -> None:
    talk, member, epoch, owned, expected = in_state(state)
    assert talk.group.members[member].state is state
    before = durable(talk.hosted)
    for _ in range(2):
        reply = full(talk, member, epoch, *owned)
        assert (reply.member_epoch, named(reply)) == (epoch, {"t": expected} if expected else {})  # type: ignore[attr-defined,arg-type]
        assert durable(talk.hosted) == before


def test_a_revocation_that_is_reported_twice_is_one_and_the_old_epoch_is_accepted() -> None:
    """The answer to the first was lost: the member still has the old epoch, and owns less than before."""
    talk, *_ = in_state(UNREVOKED)
    first = full(talk, "a", 2, 0, 1)
    before = durable(talk.hosted)
    second = full(talk, "a", 2, 0, 1)
    assert first == second
    assert named(second) == {"t": {0, 1}}  # type: ignore[arg-type]
    assert second.member_epoch == 3  # type: ignore[attr-defined]
    assert durable(talk.hosted) == before


def test_a_first_heartbeat_that_comes_twice_makes_one_member_and_one_epoch() -> None:
    """Its answer was lost. The client made its id, so that the second is a rejoin of the same member."""
    talk = Talk()
    first = talk.join("a", "t")
    before = durable(talk.hosted)
    assert talk.join("a", "t") == first
    assert durable(talk.hosted) == before


def test_a_member_whose_lost_answer_gave_it_partitions_is_not_fenced() -> None:
    """It has the previous epoch, and owns a part of what it was assigned."""
    talk = two_members()
    talk.leave("b")
    given = talk.beat("a", 3)
    assert (given.member_epoch, named(given)) == (4, {"t": {0, 1, 2, 3}})
    again = full(talk, "a", 3, 0, 1)
    assert again == given


# ---- three members


def test_a_third_member_takes_from_the_first_two_one_step_at_a_time() -> None:
    """No partition has two owners on the way; each member reaches the target by heartbeats alone."""
    talk = Talk(TopicsInMemory(t=6))
    talk.join("a", "t")
    talk.join("b", "t")
    talk.beat("a", 2)
    talk.beat("a", 2, owned={"t": (0, 1, 2)})
    talk.beat("b", 3)
    third = talk.join("c", "t")
    assert (third.member_epoch, named(third)) == (4, {})
    assert [len(talk.target(member)["t"]) for member in "abc"] == [2, 2, 2]

    assert named(talk.beat("a", 3)) == {"t": {0, 1}}
    assert named(talk.beat("c", 4)) is None
    assert talk.beat("a", 3, owned={"t": (0, 1)}).member_epoch == 4
    assert named(talk.beat("c", 4)) == {"t": {2}}
    assert talk.group.members["c"].state is UNRELEASED
    assert talk.group.state is ConsumerGroupState.RECONCILING

    kept = talk.assigned("b")["t"] & talk.target("b")["t"]
    assert named(talk.beat("b", 3)) == {"t": kept}
    assert talk.beat("b", 3, owned={"t": kept}).member_epoch == 4
    assert named(talk.beat("c", 4)) == {"t": talk.target("c")["t"]}
    assert talk.group.state is ConsumerGroupState.STABLE
    assert durable(talk.restarted(compacted=True).hosted) == durable(talk.hosted)


# ---- static members


def test_a_static_member_that_joins_or_leaves_for_good_bumps_the_epoch() -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    talk.join("b", "t", instance="j")
    assert talk.group.epoch == 3
    reply = talk.leave("b", instance="j")
    assert (reply.member_id, reply.member_epoch, talk.group.epoch) == ("b", -1, 4)
    assert "j" not in talk.group.instances


@pytest.mark.parametrize(
    ("epoch", "owned", "code"),
    [
        (3, (0, 1), ErrorCode.NONE),
        (4, (), ErrorCode.FENCED_MEMBER_EPOCH),
        (2, (0, 1), ErrorCode.NONE),  # the previous epoch, with a part of what it has
        (2, (0, 1, 2), ErrorCode.FENCED_MEMBER_EPOCH),
        (1, (0, 1), ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_the_epoch_of_a_static_member_is_checked(epoch: int, owned: tuple[int, ...], code: ErrorCode) -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    talk.join("b", "t")
    talk.beat("a", 2, instance="i", owned={"t": (0, 1, 2, 3)})
    talk.beat("a", 2, instance="i", owned={"t": (0, 1)})
    assert talk.beat("a", epoch, instance="i", owned={"t": owned}).error is code


@pytest.mark.parametrize("epoch", [-1, -2])
@pytest.mark.parametrize(
    ("member", "instance", "code", "text"),
    [
        ("a", "none", ErrorCode.UNKNOWN_MEMBER_ID, "Instance id none is unknown."),
        (
            "b",
            "i",
            ErrorCode.FENCED_INSTANCE_ID,
            "Static member b with instance id i was fenced by member a.",
        ),
    ],
)
def test_a_leave_of_another_static_member_changes_nothing(
    epoch: int, member: str, instance: str, code: ErrorCode, text: str
) -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    before, size = durable(talk.hosted), len(talk.log)
    reply = talk.leave(member, epoch, instance=instance)
    assert (reply.error, reply.message) == (code, text)
    assert (durable(talk.hosted), len(talk.log)) == (before, size)


def test_a_static_member_leaves_while_it_has_to_revoke_and_comes_back_without_that() -> None:
    """It owns nothing when it comes back, so that what it had to revoke is free."""
    talk = Talk()
    talk.join("a", "t", instance="i")
    talk.join("b", "t")
    talk.beat("a", 2, instance="i")
    assert talk.group.members["a"].state is UNREVOKED
    talk.leave("a", -2, instance="i")
    assert named(talk.beat("b", 3)) == {"t": {2, 3}}
    back = talk.join("a2", "t", instance="i")
    assert (back.member_epoch, named(back)) == (3, {"t": {0, 1}})
    assert set(talk.timers) == {"session:a2", "session:b"}, "nothing is left of the member before"


def test_a_static_member_brings_another_expression_when_it_comes_back() -> None:
    talk = Talk(TopicsInMemory(foo=1, bar=1))
    talk.beat("a", 0, regex="foo", owned={}, rebalance_ms=60_000, instance="i")
    talk.advance(0)
    talk.beat("a", 1, instance="i")
    talk.leave("a", -2, instance="i")
    talk.advance(REFRESH_MS_MIN + 1)
    back = talk.beat("a2", 0, regex="bar", owned={}, rebalance_ms=60_000, instance="i")
    assert named(back) == {}
    assert not talk.group.regexes
    talk.advance(0)
    assert set(talk.group.regexes) == {"bar"}
    assert named(talk.beat("a2", back.member_epoch, instance="i", owned={})) == {"bar": {0}}
    assert durable(talk.restarted(compacted=True).hosted) == durable(talk.hosted)


# ---- topics


def test_other_racks_make_a_new_epoch() -> None:
    talk = Talk()
    talk.join("a", "t")
    talk.topics.set("t", 4, racks=("r1", "r2"))
    assert talk.beat("a", 2).member_epoch == 3
    assert talk.beat("a", 3).member_epoch == 3


def test_a_topic_that_is_created_again_is_another_one() -> None:
    """Its partitions are those of another id: the old ones are revoked, which the member has no choice about."""
    talk = Talk(TopicsInMemory(t=2))
    talk.join("a", "t")
    talk.topics.delete("t")
    talk.topics.set("t", 2, topic_id=b"another".ljust(16, b"\0"))
    reply = talk.beat("a", 2, owned={})
    assert (reply.member_epoch, named(reply)) == (3, {"another": {0, 1}})
    assert set(talk.group.owners) == {(b"another".ljust(16, b"\0"), index) for index in range(2)}


def test_topics_are_looked_at_again_when_the_write_of_the_epoch_failed() -> None:
    """The shard replays its log: what was decided and not written has not happened."""
    talk = Talk()
    talk.join("a", "t")
    size = len(talk.log)
    talk.topics.set("t", 6)
    assert talk.beat("a", 2).member_epoch == 3
    del talk.log[size:]
    again = talk.restarted()
    assert again.group.epoch == 2
    assert again.beat("a", 2).member_epoch == 3
    assert again.assigned("a") == {"t": set(range(6))}


# ---- expressions


def test_a_member_updates_its_expression_to_a_new_one() -> None:
    talk = Talk(TopicsInMemory(foo=1, bar=1))
    talk.beat("a", 0, regex="foo", owned={}, rebalance_ms=60_000)
    talk.advance(0)
    talk.beat("a", 1)
    talk.advance(REFRESH_MS_MIN + 1)
    size = len(talk.log)
    reply = talk.beat("a", 2, regex="bar", owned={"foo": (0,)})
    assert reply.member_epoch == 2  # the epoch is bumped by the resolution
    kinds = [(kind, value is None) for kind, value in talk.records(size)]
    assert kinds == [("MemberKey", False), ("RegularExpressionKey", True), ("CurrentAssignmentKey", False)]
    assert talk.group.members["a"].state is UNREVOKED
    talk.advance(0)
    assert (talk.group.epoch, set(talk.group.regexes)) == (3, {"bar"})
    assert named(talk.beat("a", 2, owned={})) == {"bar": {0}}


def test_a_resolution_uses_what_the_client_may_describe_then() -> None:
    """CG10. A topic that another client's heartbeat resolved goes when this one may not describe it."""
    talk = Talk(TopicsInMemory(foo1=1, foo2=1))
    talk.beat("a", 0, regex="foo.*", owned={}, rebalance_ms=60_000, describes=lambda name: name == "foo1")
    talk.advance(0)
    talk.beat("a", 1)
    assert talk.assigned("a") == {"foo1": {0}}
    talk.advance(talk.settings.regex_refresh_ms - 1)
    for _ in range(2):  # the session ended meanwhile
        talk.beat("a", 0, regex="foo.*", owned={}, rebalance_ms=60_000)
        talk.advance(REFRESH_MS_MIN + 1)
    assert talk.group.regexes["foo.*"].topics == {"foo1", "foo2"}


def test_an_empty_expression_and_no_names_are_a_member_without_topics() -> None:
    talk = Talk()
    reply = talk.beat("a", 0, regex="", owned={}, rebalance_ms=60_000)
    assert (reply.error, reply.member_epoch, named(reply)) == (ErrorCode.NONE, 1, {})
    assert not talk.group.regexes


# ---- replay


def group_with(*values: records.ConsumerRecord) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for value in values:
        group.replay(value)
    return group


def test_records_of_a_member_may_come_in_any_order() -> None:
    """Compaction may leave the current assignment before the member."""
    joined = Member(member_id="a", topic_names=frozenset("t"), instance_id="i", rebalance_ms=5, epoch=7)
    owning = Member(member_id="a", epoch=7, previous_epoch=6, assigned={id_of("t"): {0: 7}})
    one = group_with(records.member("g", joined), records.current("g", owning))
    other = group_with(records.current("g", owning), records.member("g", joined))
    assert one.members == other.members
    assert one.members["a"].topic_names == {"t"}
    assert one.members["a"].epoch == 7
    assert (one.owners, one.instances) == (other.owners, other.instances)


def test_tombstones_for_what_is_not_there_change_nothing() -> None:
    tombstones = [
        *records.removed_member("g", "a"),
        records.removed_regex("g", "x"),
        records.removed_partition_metadata("g"),
        records.removed_epoch("g"),
    ]
    group = group_with(*tombstones)
    assert (group.epoch, group.target_epoch, group.members, group.targets, group.regexes) == (
        FIRST_EPOCH,
        FIRST_EPOCH,
        {},
        {},
        {},
    )
    talk = Talk()
    for tombstone in (*tombstones, records.removed_target_epoch("g")):
        talk.hosted.replay(tombstone)
    assert talk.hosted.is_vacant


def test_each_record_and_its_tombstone() -> None:
    """What replay makes of one record of each kind, and of its tombstone."""
    group = group_with(records.epoch("g", 9, 5), records.target_epoch("g", 8, 3))
    assert (group.epoch, group.metadata_hash, group.target_epoch, group.target_ms) == (9, 5, 8, 3)
    group.replay(records.target("g", "a", {id_of("t"): frozenset({1})}))
    assert group.targets == {"a": {id_of("t"): frozenset({1})}}
    group.replay(records.regex("g", "x.*", frozenset({"x1"}), 4, 6))
    assert (group.regexes["x.*"].topics, group.regexes["x.*"].version) == ({"x1"}, 4)
    group.replay(records.current("g", Member(member_id="a", epoch=8, assigned={id_of("t"): {1: 8}})))
    current, target, _ = records.removed_member("g", "a")
    for tombstone in (current, target, records.removed_regex("g", "x.*"), records.removed_target_epoch("g")):
        group.replay(tombstone)
    assert (group.owners, group.targets, group.regexes, group.target_epoch) == ({}, {}, {}, NO_EPOCH)
    assert (group.members["a"].epoch, group.members["a"].assigned) == (LEFT_EPOCH, {})


def test_a_partition_that_moved_twice_has_the_owner_of_the_last_record() -> None:
    """Compaction removes the record by which the first owner gave it up, and a topic that a member has no more."""
    topic, other = id_of("t"), id_of("u")
    group = group_with(
        records.current("g", Member(member_id="a", epoch=1, assigned={topic: {0: 1}, other: {0: 1}})),
        records.current("g", Member(member_id="b", epoch=2, assigned={topic: {0: 2}, other: {0: 2}})),
        records.current("g", Member(member_id="a", epoch=3, assigned={topic: {1: 3}})),
        records.current("g", Member(member_id="b", epoch=4, assigned={other: {0: 2}})),
        records.current("g", Member(member_id="a", epoch=5, assigned={topic: {0: 5, 1: 3}})),
    )
    assert group.owners == {(topic, 0): "a", (topic, 1): "a", (other, 0): "b"}


def a_life() -> Talk:
    """A third member joins, takes its partitions, and leaves."""
    talk = two_members()
    talk.join("c", "t")
    for member in ("a", "b"):
        reply = talk.beat(member, 3)
        talk.beat(member, 3, owned=named(reply))
    talk.beat("c", 4)
    talk.leave("c")
    return talk


@pytest.mark.parametrize("end", range(len(two_members().log), len(a_life().log) + 1))
def test_a_log_that_ends_within_a_step_makes_progress(end: int) -> None:
    """CG13. A step of more records than a batch takes may be written in part when the broker is killed."""
    before = a_life()
    del before.log[end:]
    talk = before.restarted()
    for _ in range(25):
        for member in ("a", "b"):
            known = talk.group.members[member]
            talk.beat(member, known.epoch, owned=talk.assigned(member))
        talk.advance(3_000)
    assert talk.group.state is ConsumerGroupState.STABLE
    assert [len(talk.assigned(member)["t"]) for member in ("a", "b")] == [2, 2]


# ---- settings


def test_changed_settings_count_from_the_next_heartbeat() -> None:
    talk = Talk()
    assert talk.join("a", "t").interval_ms == 5_000
    talk.settings = ConsumerGroupSettings(assignment_interval_ms=0, heartbeat_interval_ms=7_000, session_ms=50_000)
    assert talk.beat("a", 2).interval_ms == 7_000
    talk.advance(49_999)
    assert "a" in talk.group.members
    talk.advance(1)
    assert talk.group.state is ConsumerGroupState.EMPTY
