"""Conversations that Apache Kafka's own tests of its coordinator have, and that no other file here has.

docs/KIP848.md says which test of Kafka's is which one here.
"""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.script import Script, TopicsInMemory, durable, id_of, named
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


def full(script: Script, member: str, epoch: int, *owned: int, **more: object) -> object:
    """Send a heartbeat that says everything, as a member does that may have missed an answer."""
    parts = {"t": owned} if owned else {}
    return script.heartbeat(member, epoch, names=("t",), owned=parts, rebalance_ms=60_000, **more)  # type: ignore[arg-type]


# ---- heartbeats that come twice


def in_state(state: MemberState) -> tuple[Script, str, int, tuple[int, ...], set[int]]:
    """A group with a member in that state: the member, its epoch, what it owns, what it is to have."""
    if state is STABLE:
        return two_members(), "a", 3, (0, 1), {0, 1}
    script = Script()
    script.join("a", "t")
    script.join("b", "t")
    script.heartbeat("a", 2, owned={"t": (0, 1, 2, 3)})
    if state is UNREVOKED:
        return script, "a", 2, (0, 1, 2, 3), {0, 1}
    return script, "b", 3, (), set()


@pytest.mark.parametrize("state", [STABLE, UNREVOKED, UNRELEASED])
def test_a_full_heartbeat_that_comes_twice_is_answered_twice_and_writes_nothing(state: MemberState) -> None:
    script, member, epoch, owned, expected = in_state(state)
    assert script.group.members[member].state is state
    before = durable(script.hosted)
    for _ in range(2):
        reply = full(script, member, epoch, *owned)
        assert (reply.member_epoch, named(reply)) == (epoch, {"t": expected} if expected else {})  # type: ignore[attr-defined,arg-type]
        assert durable(script.hosted) == before


def test_a_revocation_that_is_reported_twice_is_one_and_the_old_epoch_is_accepted() -> None:
    """The answer to the first was lost: the member still has the old epoch, and owns less than before."""
    script, *_ = in_state(UNREVOKED)
    first = full(script, "a", 2, 0, 1)
    before = durable(script.hosted)
    second = full(script, "a", 2, 0, 1)
    assert first == second
    assert named(second) == {"t": {0, 1}}  # type: ignore[arg-type]
    assert second.member_epoch == 3  # type: ignore[attr-defined]
    assert durable(script.hosted) == before


def test_a_first_heartbeat_that_comes_twice_makes_one_member_and_one_epoch() -> None:
    """Its answer was lost. The client made its id, so that the second is a rejoin of the same member."""
    script = Script()
    first = script.join("a", "t")
    before = durable(script.hosted)
    assert script.join("a", "t") == first
    assert durable(script.hosted) == before


def test_a_member_whose_lost_answer_gave_it_partitions_is_not_fenced() -> None:
    """It has the previous epoch, and owns a part of what it was assigned."""
    script = two_members()
    script.leave("b")
    given = script.heartbeat("a", 3)
    assert (given.member_epoch, named(given)) == (4, {"t": {0, 1, 2, 3}})
    again = full(script, "a", 3, 0, 1)
    assert again == given


# ---- three members


def test_a_third_member_takes_from_the_first_two_one_step_at_a_time() -> None:
    """No partition has two owners on the way; each member reaches the target by heartbeats alone."""
    script = Script(TopicsInMemory(t=6))
    script.join("a", "t")
    script.join("b", "t")
    script.heartbeat("a", 2)
    script.heartbeat("a", 2, owned={"t": (0, 1, 2)})
    script.heartbeat("b", 3)
    third = script.join("c", "t")
    assert (third.member_epoch, named(third)) == (4, {})
    assert [len(script.target(member)["t"]) for member in "abc"] == [2, 2, 2]

    assert named(script.heartbeat("a", 3)) == {"t": {0, 1}}
    assert named(script.heartbeat("c", 4)) is None
    assert script.heartbeat("a", 3, owned={"t": (0, 1)}).member_epoch == 4
    assert named(script.heartbeat("c", 4)) == {"t": {2}}
    assert script.group.members["c"].state is UNRELEASED
    assert script.group.state is ConsumerGroupState.RECONCILING

    kept = script.assigned("b")["t"] & script.target("b")["t"]
    assert named(script.heartbeat("b", 3)) == {"t": kept}
    assert script.heartbeat("b", 3, owned={"t": kept}).member_epoch == 4
    assert named(script.heartbeat("c", 4)) == {"t": script.target("c")["t"]}
    assert script.group.state is ConsumerGroupState.STABLE
    assert durable(script.restarted(compacted=True).hosted) == durable(script.hosted)


# ---- static members


def test_a_static_member_that_joins_or_leaves_for_good_bumps_the_epoch() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    script.join("b", "t", instance="j")
    assert script.group.epoch == 3
    reply = script.leave("b", instance="j")
    assert (reply.member_id, reply.member_epoch, script.group.epoch) == ("b", -1, 4)
    assert "j" not in script.group.instances


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
    script = Script()
    script.join("a", "t", instance="i")
    script.join("b", "t")
    script.heartbeat("a", 2, instance="i", owned={"t": (0, 1, 2, 3)})
    script.heartbeat("a", 2, instance="i", owned={"t": (0, 1)})
    assert script.heartbeat("a", epoch, instance="i", owned={"t": owned}).error is code


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
    script = Script()
    script.join("a", "t", instance="i")
    before, size = durable(script.hosted), len(script.log)
    reply = script.leave(member, epoch, instance=instance)
    assert (reply.error, reply.message) == (code, text)
    assert (durable(script.hosted), len(script.log)) == (before, size)


def test_a_static_member_leaves_while_it_has_to_revoke_and_comes_back_without_that() -> None:
    """It owns nothing when it comes back, so that what it had to revoke is free."""
    script = Script()
    script.join("a", "t", instance="i")
    script.join("b", "t")
    script.heartbeat("a", 2, instance="i")
    assert script.group.members["a"].state is UNREVOKED
    script.leave("a", -2, instance="i")
    assert named(script.heartbeat("b", 3)) == {"t": {2, 3}}
    back = script.join("a2", "t", instance="i")
    assert (back.member_epoch, named(back)) == (3, {"t": {0, 1}})
    assert set(script.timers) == {"session:a2", "session:b"}, "nothing is left of the member before"


def test_a_static_member_that_is_fenced_joins_again_when_its_session_is_over() -> None:
    """As in Kafka, also with its own member id. It is fenced as two answers in a row were lost."""
    script = Script()
    script.join("a", "t", instance="i")
    script.join("b", "t")
    script.heartbeat("a", 2, instance="i", owned={})  # epoch 3
    script.leave("b")
    script.heartbeat("a", 2, instance="i", owned={})  # epoch 4
    assert script.heartbeat("a", 2, instance="i", owned={}).error is ErrorCode.FENCED_MEMBER_EPOCH
    script.advance(ConsumerGroupSettings().session_ms - 1)
    assert script.join("a", "t", instance="i").error is ErrorCode.UNRELEASED_INSTANCE_ID
    script.advance(1)
    assert named(script.join("a", "t", instance="i")) == {"t": {0, 1, 2, 3}}


def test_a_static_member_brings_another_expression_when_it_comes_back() -> None:
    script = Script(TopicsInMemory(foo=1, bar=1))
    script.heartbeat("a", 0, regex="foo", owned={}, rebalance_ms=60_000, instance="i")
    script.advance(0)
    script.heartbeat("a", 1, instance="i")
    script.leave("a", -2, instance="i")
    script.advance(REFRESH_MS_MIN + 1)
    back = script.heartbeat("a2", 0, regex="bar", owned={}, rebalance_ms=60_000, instance="i")
    assert named(back) == {}
    assert not script.group.regexes
    script.advance(0)
    assert set(script.group.regexes) == {"bar"}
    assert named(script.heartbeat("a2", back.member_epoch, instance="i", owned={})) == {"bar": {0}}
    assert durable(script.restarted(compacted=True).hosted) == durable(script.hosted)


# ---- topics


def test_other_racks_make_a_new_epoch() -> None:
    script = Script()
    script.join("a", "t")
    script.topics.set("t", 4, racks=("r1", "r2"))
    assert script.heartbeat("a", 2).member_epoch == 3
    assert script.heartbeat("a", 3).member_epoch == 3


def test_a_topic_that_is_created_again_is_another_one() -> None:
    """Its partitions are those of another id: the old ones are revoked, which the member has no choice about."""
    script = Script(TopicsInMemory(t=2))
    script.join("a", "t")
    script.topics.delete("t")
    script.topics.set("t", 2, topic_id=b"another".ljust(16, b"\0"))
    reply = script.heartbeat("a", 2, owned={})
    assert (reply.member_epoch, named(reply)) == (3, {"another": {0, 1}})
    assert set(script.group.owners) == {(b"another".ljust(16, b"\0"), index) for index in range(2)}


def test_topics_are_looked_at_again_when_the_write_of_the_epoch_failed() -> None:
    """The shard replays its log: what was decided and not written has not happened."""
    script = Script()
    script.join("a", "t")
    size = len(script.log)
    script.topics.set("t", 6)
    assert script.heartbeat("a", 2).member_epoch == 3
    del script.log[size:]
    again = script.restarted()
    assert again.group.epoch == 2
    assert again.heartbeat("a", 2).member_epoch == 3
    assert again.assigned("a") == {"t": set(range(6))}


# ---- expressions


def test_a_member_updates_its_expression_to_a_new_one() -> None:
    script = Script(TopicsInMemory(foo=1, bar=1))
    script.heartbeat("a", 0, regex="foo", owned={}, rebalance_ms=60_000)
    script.advance(0)
    script.heartbeat("a", 1)
    script.advance(REFRESH_MS_MIN + 1)
    size = len(script.log)
    reply = script.heartbeat("a", 2, regex="bar", owned={"foo": (0,)})
    assert reply.member_epoch == 2  # the epoch is bumped by the resolution
    kinds = [(kind, value is None) for kind, value in script.records(size)]
    assert kinds == [("MemberKey", False), ("RegularExpressionKey", True), ("CurrentAssignmentKey", False)]
    assert script.group.members["a"].state is UNREVOKED
    script.advance(0)
    assert (script.group.epoch, set(script.group.regexes)) == (3, {"bar"})
    assert named(script.heartbeat("a", 2, owned={})) == {"bar": {0}}


def test_a_resolution_uses_what_the_client_may_describe_then() -> None:
    """CG10. A topic that another client's heartbeat resolved goes when this one may not describe it."""
    script = Script(TopicsInMemory(foo1=1, foo2=1))
    script.heartbeat("a", 0, regex="foo.*", owned={}, rebalance_ms=60_000, can_describe=lambda name: name == "foo1")
    script.advance(0)
    script.heartbeat("a", 1)
    assert script.assigned("a") == {"foo1": {0}}
    script.advance(script.settings.regex_refresh_ms - 1)
    for _ in range(2):  # the session ended meanwhile
        script.heartbeat("a", 0, regex="foo.*", owned={}, rebalance_ms=60_000)
        script.advance(REFRESH_MS_MIN + 1)
    assert script.group.regexes["foo.*"].topics == {"foo1", "foo2"}


def test_an_empty_expression_and_no_names_are_a_member_without_topics() -> None:
    script = Script()
    reply = script.heartbeat("a", 0, regex="", owned={}, rebalance_ms=60_000)
    assert (reply.error, reply.member_epoch, named(reply)) == (ErrorCode.NONE, 1, {})
    assert not script.group.regexes


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
    script = Script()
    for tombstone in (*tombstones, records.removed_target_epoch("g")):
        script.hosted.replay(tombstone)
    assert script.hosted.is_vacant


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


def a_life() -> Script:
    """A third member joins, takes its partitions, and leaves."""
    script = two_members()
    script.join("c", "t")
    for member in ("a", "b"):
        reply = script.heartbeat(member, 3)
        script.heartbeat(member, 3, owned=named(reply))
    script.heartbeat("c", 4)
    script.leave("c")
    return script


@pytest.mark.parametrize("end", range(len(two_members().log), len(a_life().log) + 1))
def test_a_log_that_ends_within_a_step_makes_progress(end: int) -> None:
    """CG13. A step of more records than a batch takes may be written in part when the broker is killed."""
    before = a_life()
    del before.log[end:]
    script = before.restarted()
    for _ in range(25):
        for member in ("a", "b"):
            known = script.group.members[member]
            script.heartbeat(member, known.epoch, owned=script.assigned(member))
        script.advance(3_000)
    assert script.group.state is ConsumerGroupState.STABLE
    assert [len(script.assigned(member)["t"]) for member in ("a", "b")] == [2, 2]


# ---- settings


def test_changed_settings_count_from_the_next_heartbeat() -> None:
    script = Script()
    assert script.join("a", "t").interval_ms == 5_000
    script.settings = ConsumerGroupSettings(assignment_interval_ms=0, heartbeat_interval_ms=7_000, session_ms=50_000)
    assert script.heartbeat("a", 2).interval_ms == 7_000
    script.advance(49_999)
    assert "a" in script.group.members
    script.advance(1)
    assert script.group.state is ConsumerGroupState.EMPTY
