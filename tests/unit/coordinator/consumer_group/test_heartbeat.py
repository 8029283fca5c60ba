"""Conversations of members that join, reconcile and rejoin; which heartbeats are refused without any change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.coordinator.consumer_group.script import Script, TopicsInMemory, durable, named

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.events import HeartbeatReply
from rota.coordinator.consumer_group.member import ClassicMember, MemberState
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.state import ConsumerGroupState
from rota.protocol.errors import ErrorCode


def two_members() -> Script:
    """a has t-0 and t-1, b has t-2 and t-3, both in epoch 3."""
    script = Script()
    script.join("a", "t")
    script.join("b", "t")
    script.heartbeat("a", 2, owned={"t": (0, 1, 2, 3)})
    script.heartbeat("a", 2, owned={"t": (0, 1)})
    script.heartbeat("b", 3)
    return script


def test_the_first_member_gets_everything_in_epoch_2() -> None:
    script = Script()
    reply = script.join("a", "t")
    assert (reply.error, reply.member_id, reply.member_epoch) == (ErrorCode.NONE, "a", 2)
    assert named(reply) == {"t": {0, 1, 2, 3}}
    assert reply.interval_ms == 5_000
    assert script.group.state is ConsumerGroupState.STABLE


def test_the_records_of_a_first_member_are_in_kafkas_order() -> None:
    script = Script()
    script.join("a", "t")
    kinds = [kind for kind, _ in script.records()]
    assert kinds == ["MemberKey", "EpochKey", "TargetMemberKey", "TargetEpochKey", "CurrentAssignmentKey"]


def test_two_members_reconcile_step_by_step() -> None:
    script = Script()
    script.join("a", "t")
    second = script.join("b", "t")
    assert (second.member_epoch, named(second)) == (3, {})  # at the target epoch, and nothing is free yet
    assert script.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    assert script.group.state is ConsumerGroupState.RECONCILING

    first = script.heartbeat("a", 2)
    assert (first.member_epoch, named(first)) == (2, {"t": {0, 1}})
    assert script.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert named(script.heartbeat("a", 2)) is None  # it has not revoked yet
    assert named(script.heartbeat("b", 3)) is None

    done = script.heartbeat("a", 2, owned={"t": (0, 1)})
    assert (done.member_epoch, named(done)) == (3, None)
    assert named(script.heartbeat("b", 3)) == {"t": {2, 3}}
    assert script.group.state is ConsumerGroupState.STABLE


def test_a_new_group_and_a_restarted_one_are_the_same() -> None:
    script = two_members()
    for compacted in (False, True):
        assert durable(script.restarted(compacted=compacted).hosted) == durable(script.hosted)


def test_a_member_that_says_everything_gets_its_assignment_again() -> None:
    script = two_members()
    reply = script.heartbeat("a", 3, names=("t",), owned={"t": (0, 1)}, rebalance_ms=60_000)
    assert (reply.member_epoch, named(reply)) == (3, {"t": {0, 1}})
    before = len(script.log)
    script.heartbeat("a", 3, names=("t",), owned={"t": (0, 1)}, rebalance_ms=60_000)
    assert len(script.log) == before


def test_a_member_rejoins_with_epoch_0_and_keeps_its_partitions() -> None:
    script = two_members()
    reply = script.join("a", "t")
    assert (reply.member_epoch, named(reply)) == (3, {"t": {0, 1}})
    assert script.group.epoch == 3


def test_a_member_rejoins_with_epoch_0_while_it_has_to_revoke() -> None:
    script = Script()
    script.join("a", "t")
    script.join("b", "t")
    script.heartbeat("a", 2)
    reply = script.join("a", "t")
    assert (reply.member_epoch, named(reply)) == (3, {"t": {0, 1}})  # it owns nothing any more: all is revoked


def test_a_member_rejoins_with_epoch_0_while_partitions_are_not_released() -> None:
    script = Script()
    script.join("a", "t")
    script.join("b", "t")
    reply = script.join("b", "t")
    assert (reply.member_epoch, named(reply)) == (3, {})


def test_a_changed_subscription_makes_a_new_target() -> None:
    script = Script(TopicsInMemory(t=2, u=2))
    script.join("a", "t")
    reply = script.heartbeat("a", 2, names=("t", "u"))
    assert (reply.member_epoch, named(reply)) == (3, {"t": {0, 1}, "u": {0, 1}})


def test_partitions_of_a_topic_that_is_not_subscribed_any_more_are_revoked_at_once() -> None:
    script = Script(TopicsInMemory(t=2, u=2), ConsumerGroupSettings(assignment_interval_ms=1_000))
    script.join("a", "t", "u")
    reply = script.heartbeat("a", 2, names=("t",))  # the interval is not over: there is no new target yet
    assert (reply.member_epoch, named(reply)) == (2, {"t": {0, 1}})
    assert script.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    script.advance(1_000)
    assert script.heartbeat("a", 2, owned={"t": (0, 1)}).member_epoch == 3


def test_new_partitions_of_a_topic_make_a_new_target() -> None:
    script = two_members()
    script.topics.set("t", 6)
    script.heartbeat("a", 3)
    assert script.group.epoch == 4
    assert script.group.metadata_hash == script.restarted().group.metadata_hash
    script.heartbeat("b", 3)
    assert script.assigned("a") == {"t": {0, 1, 4}}
    assert script.assigned("b") == {"t": {2, 3, 5}}


def test_another_topic_changes_nothing() -> None:
    script = two_members()
    script.topics.set("other", 3)
    before = len(script.log)
    script.heartbeat("a", 3)
    assert len(script.log) == before


def test_a_deleted_topic_is_taken_away() -> None:
    script = two_members()
    script.topics.delete("t")
    reply = script.heartbeat("a", 3)
    assert (reply.member_epoch, named(reply)) == (3, {})
    assert script.heartbeat("a", 3, owned={}).member_epoch == 4


def test_topics_that_changed_while_the_coordinator_was_down_are_noticed() -> None:
    script = two_members()
    script.topics.set("t", 8)
    other = script.restarted()
    other.heartbeat("a", 3)
    assert other.group.epoch == 4


def test_a_second_member_within_the_assignment_interval_gets_the_old_epoch_and_nothing() -> None:
    script = Script(settings=ConsumerGroupSettings(assignment_interval_ms=1_000))
    script.join("a", "t")
    reply = script.join("b", "t")
    assert (reply.member_epoch, named(reply)) == (2, {})
    assert script.group.state is ConsumerGroupState.ASSIGNING
    script.advance(999)
    script.heartbeat("b", 2)
    assert script.group.state is ConsumerGroupState.ASSIGNING
    script.advance(1)
    script.heartbeat("b", 2)
    assert script.group.target_epoch == 3


def test_the_answer_to_a_member_in_its_previous_epoch_is_repeated() -> None:
    script = two_members()
    reply = script.heartbeat("a", 2, owned={"t": (0, 1)})  # it did not get the answer with epoch 3
    assert (reply.error, reply.member_epoch) == (ErrorCode.NONE, 3)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_assignor_that_most_members_name_is_used(assignor: str) -> None:
    script = Script()
    script.join("a", "t", assignor=assignor)
    script.join("b", "t", assignor=assignor)
    script.join("c", "t")
    script.heartbeat("a", 2)
    assert script.group.preferred_assignor() == assignor
    assert script.noted("Assignment received from leader")[-1]["protocol"] == assignor


def test_a_joining_member_is_in_the_timeline_with_its_rebalance() -> None:
    script = Script()
    script.join("a", "t")
    names = [name for name, _ in script.notes]
    assert names == [
        "Dynamic member with unknown member id joins group and is added",
        "Preparing to rebalance group",
        "Assignment received from leader",
    ]
    assert script.notes[1][1]["trigger"] == "member-joined"


def test_a_member_in_a_state_of_a_newer_broker_changes_nothing_until_it_owns_nothing() -> None:
    """G3. Its subscription and the epoch were written although its heartbeat was refused."""
    script = Script(TopicsInMemory(t=4, u=1))
    script.join("a", "t")
    newer = replace(script.group.members["a"], state=MemberState.UNKNOWN)
    script.group.replay(records.current("g", newer))
    before, size = durable(script.hosted), len(script.log)
    for owned in (None, {"t": (0,)}):
        reply = script.heartbeat("a", 2, names=("u",), owned=owned)
        assert reply.error is ErrorCode.FENCED_MEMBER_EPOCH
        assert (durable(script.hosted), len(script.log)) == (before, size)
    assert script.heartbeat("a", 2, owned={}).error is ErrorCode.NONE


def test_a_subscription_that_the_offsets_topic_does_not_take_is_refused() -> None:
    """CO3, with the code of Kafka 4.3.1 for a subscription of 2 MB."""
    script = Script(settings=ConsumerGroupSettings(assignment_interval_ms=0, record_bytes_max=1_000))
    script.join("a", "t")
    before = durable(script.hosted)
    names = [f"{number:032d}" for number in range(30)]
    for reply in (
        script.join("b", *names),
        script.heartbeat("a", 2, names=names),
        script.heartbeat("a", 2, regex="x" * 1_000),
    ):
        assert (reply.error, reply.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert durable(script.hosted) == before
    assert script.join("b", *names[:20]).error is ErrorCode.NONE


# ---- without a step


def test_a_heartbeat_that_says_nothing_new_extends_the_session_without_a_step() -> None:
    """Law CG19; `Script.beat` compares each such answer with that of a step."""
    script = two_members()
    script.advance(30_000)
    reply = script.extend_session("a", 3)
    assert reply is not None
    assert (reply.member_id, reply.member_epoch, reply.assignment) == ("a", 3, None)
    script.advance(20_000)  # the session timeout is 45 s
    assert set(script.group.members) == {"a"}
    script.advance(25_000)
    assert not script.group.members


def test_a_step_decides_where_something_may_have_changed() -> None:
    script = Script()
    assert script.extend_session("a", 1) is None  # no group
    script = two_members()
    for member, epoch in (("c", 3), ("a", 0), ("a", -1), ("a", 2), ("a", 4)):
        assert script.extend_session(member, epoch) is None
    assert script.hosted.extend_session("a", 3, ("other", "/127.0.0.1"), script.now_ms) is None
    script.topics.set("u", 1)
    assert script.extend_session("a", 3) is None  # the topics have to be looked at
    script.heartbeat("a", 3)
    assert script.extend_session("a", 3) is not None
    script.group.has_partition_metadata = True
    assert script.extend_session("a", 3) is None  # a record of Kafka 4.0 has to be removed
    script.join("c", "t")
    assert script.extend_session("a", 3) is None  # it has to revoke


def test_a_step_decides_where_expressions_may_have_to_be_resolved() -> None:
    script = Script()
    script.heartbeat("a", 0, regex="t.*", owned={}, rebalance_ms=60_000)
    script.advance(1)
    epoch = script.heartbeat("a", script.group.members["a"].epoch).member_epoch
    assert script.group.members["a"].is_reconciled_to(epoch)
    assert script.extend_session("a", epoch) is None


def test_a_step_decides_where_a_target_is_to_be_computed() -> None:
    script = Script(settings=ConsumerGroupSettings(assignment_interval_ms=1_000))
    script.join("a", "t")
    script.join("b", "t")
    assert (script.group.epoch, script.group.target_epoch) == (3, 2)
    script.advance(1_000)
    assert script.extend_session("a", 2) is None
    assert named(script.heartbeat("a", 2)) == {"t": {0, 1}}


def test_a_step_decides_where_a_member_changes_its_protocol() -> None:
    script = two_members()
    classic = ClassicMember(session_ms=10_000, protocols=())
    script.group.members["a"] = replace(script.group.members["a"], classic=classic)
    assert script.extend_session("a", 3) is None


def refused(script: Script, reply: HeartbeatReply, code: ErrorCode, log_before: int) -> None:
    assert reply.error is code
    assert reply.message
    assert len(script.log) == log_before
    assert durable(script.restarted().hosted) == durable(script.hosted)


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", 4, ErrorCode.FENCED_MEMBER_EPOCH),
        ("a", 1, ErrorCode.FENCED_MEMBER_EPOCH),
        ("a", 2, ErrorCode.FENCED_MEMBER_EPOCH),  # the previous one, but it does not say what it owns
    ],
)
def test_a_wrong_epoch_or_member_is_refused(member: str, epoch: int, code: ErrorCode) -> None:
    script = two_members()
    before = len(script.log)
    refused(script, script.heartbeat(member, epoch), code, before)


def test_the_previous_epoch_with_partitions_that_it_has_not_is_fenced() -> None:
    script = two_members()
    before = len(script.log)
    refused(script, script.heartbeat("a", 2, owned={"t": (0, 3)}), ErrorCode.FENCED_MEMBER_EPOCH, before)


def test_a_member_beyond_the_size_of_the_group_is_refused() -> None:
    script = Script(settings=ConsumerGroupSettings(assignment_interval_ms=0, size_max=1))
    script.join("a", "t")
    before = len(script.log)
    refused(script, script.join("b", "t"), ErrorCode.GROUP_MAX_SIZE_REACHED, before)
    assert script.join("a", "t").error is ErrorCode.NONE


def test_a_group_that_does_not_exist_is_not_found() -> None:
    script = Script()
    refusals = script.heartbeat("a", 1), script.leave("a")
    assert [reply.error for reply in refusals] == [ErrorCode.GROUP_ID_NOT_FOUND] * 2
    assert [reply.message for reply in refusals] == ["Consumer group g not found.", "Group g not found."]
    assert script.hosted.is_vacant


def test_an_instance_that_is_in_use_is_not_released() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    before = len(script.log)
    refused(script, script.join("b", "t", instance="i"), ErrorCode.UNRELEASED_INSTANCE_ID, before)


def test_a_static_member_is_checked_by_its_instance() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    before = len(script.log)
    refused(script, script.heartbeat("b", 2, instance="i"), ErrorCode.FENCED_INSTANCE_ID, before)
    refused(script, script.heartbeat("a", 2, instance="j"), ErrorCode.UNKNOWN_MEMBER_ID, before)
    refused(script, script.leave("b", instance="i"), ErrorCode.FENCED_INSTANCE_ID, before)
    refused(script, script.leave("a", instance="j"), ErrorCode.UNKNOWN_MEMBER_ID, before)
    refused(script, script.heartbeat("a", 9, instance="i"), ErrorCode.FENCED_MEMBER_EPOCH, before)
