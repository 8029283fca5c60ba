"""Members that leave, fail, or do not revoke in time."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.talk import Talk, durable, named
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.state import ConsumerGroupState
from rota.protocol.errors import ErrorCode

SESSION_MS = ConsumerGroupSettings().session_ms


def test_a_member_that_leaves_is_removed_and_the_epoch_is_bumped() -> None:
    talk = two_members()
    before = len(talk.log)
    reply = talk.leave("b")
    assert (reply.error, reply.member_id, reply.member_epoch) == (ErrorCode.NONE, "b", -1)
    kinds = talk.records(before)
    assert [kind for kind, _ in kinds] == ["CurrentAssignmentKey", "TargetMemberKey", "MemberKey", "EpochKey"]
    assert [value is None for _, value in kinds] == [True, True, True, False]
    assert named(talk.beat("a", 3)) == {"t": {0, 1, 2, 3}}
    assert talk.group.epoch == 4


def test_the_last_member_leaves_an_empty_group_without_a_hash() -> None:
    talk = Talk()
    talk.join("a", "t")
    talk.leave("a")
    assert talk.group.state is ConsumerGroupState.EMPTY
    assert (talk.group.epoch, talk.group.metadata_hash) == (3, 0)
    assert not talk.timers
    assert not talk.hosted.is_vacant
    assert talk.noted("Group is now empty")


def test_a_static_member_that_will_be_back_keeps_its_place() -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    talk.join("b", "t")
    talk.beat("a", 2, instance="i")
    talk.beat("a", 2, instance="i", owned={"t": (0, 1)})
    before, epoch = len(talk.log), talk.group.epoch
    reply = talk.leave("a", -2, instance="i")
    assert (reply.error, reply.member_epoch) == (ErrorCode.NONE, -2)
    assert [kind for kind, _ in talk.records(before)] == ["CurrentAssignmentKey"]
    assert talk.group.epoch == epoch

    back = talk.join("a2", "t", instance="i")
    assert (back.member_epoch, named(back)) == (3, {"t": {0, 1}})
    assert talk.group.epoch == epoch
    assert set(talk.group.members) == {"a2", "b"}
    assert durable(talk.restarted(compacted=True).hosted) == durable(talk.hosted)


def test_the_records_of_a_replaced_static_member_are_in_kafkas_order() -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    talk.leave("a", -2, instance="i")
    before = len(talk.log)
    talk.join("a2", "t", instance="i")
    assert [(kind, value is None) for kind, value in talk.records(before)] == [
        ("CurrentAssignmentKey", True),
        ("TargetMemberKey", True),
        ("MemberKey", True),
        ("MemberKey", False),
        ("TargetMemberKey", False),
        ("CurrentAssignmentKey", False),
        ("CurrentAssignmentKey", False),
    ]


def test_a_static_member_that_is_not_back_in_time_is_removed() -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    talk.leave("a", -2, instance="i")
    talk.advance(SESSION_MS)
    assert talk.group.state is ConsumerGroupState.EMPTY


def test_a_static_member_that_rejoins_with_other_topics_bumps_the_epoch() -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    talk.leave("a", -2, instance="i")
    talk.topics.set("u", 1)
    reply = talk.join("a2", "t", "u", instance="i")
    assert (reply.member_epoch, named(reply)) == (3, {"t": {0, 1, 2, 3}, "u": {0}})


def test_a_session_ends_without_heartbeats_and_each_of_them_restarts_it() -> None:
    talk = two_members()
    talk.advance(SESSION_MS - 1)
    talk.beat("a", 3)
    talk.advance(1)
    assert set(talk.group.members) == {"a"}
    assert "the member session expired" in talk.noted("Member has failed, removing it from the group")[0]["reason"]
    talk.advance(SESSION_MS - 2)
    assert set(talk.group.members) == {"a"}
    talk.advance(1)
    assert not talk.group.members


def test_a_loaded_member_has_a_full_session() -> None:
    talk = two_members()
    talk.advance(SESSION_MS - 1)
    other = talk.restarted()
    other.advance(SESSION_MS - 1)
    assert set(other.group.members) == {"a", "b"}
    other.advance(1)
    assert not other.group.members


def test_a_member_that_does_not_revoke_in_its_rebalance_timeout_is_removed() -> None:
    talk = Talk()
    talk.beat("a", 0, names=("t",), owned={}, rebalance_ms=10_000)
    talk.join("b", "t")
    talk.beat("a", 2)
    talk.advance(9_999)
    talk.beat("a", 2)
    assert "a" in talk.group.members
    talk.advance(1)
    assert set(talk.group.members) == {"b"}
    assert named(talk.beat("b", 3)) == {"t": {0, 1, 2, 3}}


def test_a_member_that_revokes_in_time_has_no_rebalance_timer() -> None:
    talk = Talk()
    talk.beat("a", 0, names=("t",), owned={}, rebalance_ms=10_000)
    talk.join("b", "t")
    talk.beat("a", 2)
    assert "rebalance:a" in talk.timers
    talk.beat("a", 2, owned={"t": (0, 1)})
    assert "rebalance:a" not in talk.timers


def test_a_loaded_member_that_has_to_revoke_gets_its_rebalance_timeout() -> None:
    talk = Talk()
    talk.beat("a", 0, names=("t",), owned={}, rebalance_ms=10_000)
    talk.join("b", "t")
    talk.beat("a", 2)
    other = talk.restarted()
    other.advance(10_000)
    assert set(other.group.members) == {"b"}
