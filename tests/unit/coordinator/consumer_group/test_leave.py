"""Members that leave, fail, or do not revoke in time."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import Script, durable, named
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.state import ConsumerGroupState
from rota.coordinator.group.notes import RECONCILING
from rota.protocol.errors import ErrorCode

SESSION_MS = ConsumerGroupSettings().session_ms


def test_a_member_that_leaves_is_removed_and_the_epoch_is_bumped() -> None:
    script = two_members()
    before = len(script.log)
    reply = script.leave("b")
    assert (reply.error, reply.member_id, reply.member_epoch) == (ErrorCode.NONE, "b", -1)
    kinds = script.records(before)
    assert [kind for kind, _ in kinds] == ["CurrentAssignmentKey", "TargetMemberKey", "MemberKey", "EpochKey"]
    assert [value is None for _, value in kinds] == [True, True, True, False]
    assert named(script.heartbeat("a", 3)) == {"t": {0, 1, 2, 3}}
    assert script.group.epoch == 4


def test_the_last_member_leaves_an_empty_group_without_a_hash() -> None:
    script = Script()
    script.join("a", "t")
    script.leave("a")
    assert script.group.state is ConsumerGroupState.EMPTY
    assert (script.group.epoch, script.group.metadata_hash) == (3, 0)
    assert not script.timers
    assert not script.hosted.is_vacant
    assert script.noted("Group is now empty")


def test_a_static_member_that_will_be_back_keeps_its_place() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    script.join("b", "t")
    script.heartbeat("a", 2, instance="i")
    script.heartbeat("a", 2, instance="i", owned={"t": (0, 1)})
    before, epoch = len(script.log), script.group.epoch
    reply = script.leave("a", -2, instance="i")
    assert (reply.error, reply.member_epoch) == (ErrorCode.NONE, -2)
    assert [kind for kind, _ in script.records(before)] == ["CurrentAssignmentKey"]
    assert script.group.epoch == epoch

    back = script.join("a2", "t", instance="i")
    assert (back.member_epoch, named(back)) == (3, {"t": {0, 1}})
    assert script.group.epoch == epoch
    assert set(script.group.members) == {"a2", "b"}
    assert durable(script.restarted(compacted=True).hosted) == durable(script.hosted)


def test_the_records_of_a_replaced_static_member_are_in_kafkas_order() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    script.leave("a", -2, instance="i")
    before = len(script.log)
    script.join("a2", "t", instance="i")
    assert [(kind, value is None) for kind, value in script.records(before)] == [
        ("CurrentAssignmentKey", True),
        ("TargetMemberKey", True),
        ("MemberKey", True),
        ("MemberKey", False),
        ("TargetMemberKey", False),
        ("CurrentAssignmentKey", False),
        ("CurrentAssignmentKey", False),
    ]


def test_a_static_member_that_is_not_back_in_time_is_removed() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    script.leave("a", -2, instance="i")
    script.advance(SESSION_MS)
    assert script.group.state is ConsumerGroupState.EMPTY


def test_a_static_member_that_rejoins_with_other_topics_bumps_the_epoch() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    script.leave("a", -2, instance="i")
    script.topics.set("u", 1)
    reply = script.join("a2", "t", "u", instance="i")
    assert (reply.member_epoch, named(reply)) == (3, {"t": {0, 1, 2, 3}, "u": {0}})


def test_a_session_ends_without_heartbeats_and_each_of_them_restarts_it() -> None:
    script = two_members()
    script.advance(SESSION_MS - 1)
    script.heartbeat("a", 3)
    script.advance(1)
    assert set(script.group.members) == {"a"}
    assert "the member session expired" in script.noted("Member has failed, removing it from the group")[0]["reason"]
    script.advance(SESSION_MS - 2)
    assert set(script.group.members) == {"a"}
    script.advance(1)
    assert not script.group.members


def test_a_loaded_member_has_a_full_session() -> None:
    script = two_members()
    script.advance(SESSION_MS - 1)
    other = script.restarted()
    other.advance(SESSION_MS - 1)
    assert set(other.group.members) == {"a", "b"}
    other.advance(1)
    assert not other.group.members


def test_a_member_that_does_not_revoke_in_its_rebalance_timeout_is_removed() -> None:
    script = Script()
    script.heartbeat("a", 0, names=("t",), owned={}, rebalance_ms=10_000)
    script.join("b", "t")
    script.heartbeat("a", 2)
    script.advance(9_999)
    script.heartbeat("a", 2)
    assert "a" in script.group.members
    script.advance(1)
    assert set(script.group.members) == {"b"}
    assert named(script.heartbeat("b", 3)) == {"t": {0, 1, 2, 3}}


def test_a_member_that_revokes_in_time_has_no_rebalance_timer() -> None:
    script = Script()
    script.heartbeat("a", 0, names=("t",), owned={}, rebalance_ms=10_000)
    script.join("b", "t")
    script.heartbeat("a", 2)
    assert "rebalance:a" in script.timers
    script.heartbeat("a", 2, owned={"t": (0, 1)})
    assert "rebalance:a" not in script.timers


def test_a_loaded_member_that_has_to_revoke_gets_its_rebalance_timeout() -> None:
    script = Script()
    script.heartbeat("a", 0, names=("t",), owned={}, rebalance_ms=10_000)
    script.join("b", "t")
    script.heartbeat("a", 2)
    other = script.restarted()
    other.advance(10_000)
    assert set(other.group.members) == {"b"}


def revoking_member_that_is_away() -> Script:
    """`a` had to give two partitions to `b`, and left for a while instead."""
    script = Script()
    script.heartbeat("a", 0, names=("t",), owned={}, rebalance_ms=10_000, instance="i")
    script.join("b", "t")
    script.heartbeat("a", 2, instance="i")
    script.leave("a", -2, instance="i")
    return script


def test_cg8_a_loaded_static_member_that_left_while_it_had_to_revoke_has_its_session_and_no_rebalance_timeout() -> None:
    other = revoking_member_that_is_away().restarted()
    assert set(other.timers) == {"session:a", "session:b"}
    other.advance(SESSION_MS - 1)
    assert set(other.group.members) == {"a", "b"}
    other.advance(1)
    assert not other.group.members


def test_tl13_nobody_waits_for_a_revocation_of_a_static_member_that_is_away() -> None:
    script = revoking_member_that_is_away()
    assert script.restarted().noted(RECONCILING)[-1]["waiting"] == []
    script.leave("b")
    script.join("c", "t")
    assert script.noted(RECONCILING)[-1]["waiting"] == []
