"""One group id: of the classic protocol, of the consumer protocol, and how it changes while it is Empty."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import Script, durable
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.group.events import Heartbeat, Leave, LeavingMember, MemberId
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode


def test_a_consumer_heartbeat_to_an_empty_classic_group_makes_it_a_consumer_group() -> None:
    script = Script()
    script.commit("", -1)
    token = script.classic_join()
    script.advance(0)
    joined = script.replies.pop(token)
    leave = Leave(script.token(), (LeavingMember(MemberId(joined.member_id), None),))
    script.send(leave)
    assert script.hosted.state is GroupState.EMPTY
    before = len(script.log)
    assert script.join("a", "t").member_epoch == 2
    assert script.log[before][1] is None  # the tombstone of the classic group stands before the first record
    assert script.hosted.summary.kind == "consumer"
    assert script.hosted.offsets  # they belong to the id
    for compacted in (False, True):
        assert durable(script.restarted(compacted=compacted).hosted) == durable(script.hosted)


def test_a_classic_join_to_an_empty_consumer_group_makes_it_a_classic_group() -> None:
    script = Script()
    script.join("a", "t")
    script.commit("a", 2)
    script.leave("a")
    token = script.classic_join()
    script.advance(0)
    assert script.replies[token].error is ErrorCode.NONE
    assert script.hosted.summary.kind == "classic"
    assert script.hosted.offsets
    for compacted in (False, True):
        assert durable(script.restarted(compacted=compacted).hosted) == durable(script.hosted)


def test_a_classic_heartbeat_of_a_consumer_member_is_unknown() -> None:
    script = two_members()
    assert script.send(Heartbeat(script.token(), MemberId("a"), None, 3)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert script.hosted.heartbeat(MemberId("a"), None, 3, 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_consumer_group_is_deleted_with_its_offsets() -> None:
    script = Script()
    script.join("a", "t")
    script.commit("a", 2)
    assert script.delete() is ErrorCode.NON_EMPTY_GROUP
    script.leave("a")
    before = len(script.log)
    assert script.delete() is ErrorCode.NONE
    assert all(value is None for _, value in script.log[before:])
    assert [kind for kind, _ in script.records(before)] == ["TargetEpochKey", "PartitionMetadataKey", "EpochKey"]
    assert script.hosted.is_vacant
    assert script.restarted().hosted.is_vacant
    assert script.restarted(compacted=True).hosted.is_vacant


def test_a_deleted_group_begins_again_at_epoch_2() -> None:
    script = Script()
    script.join("a", "t")
    script.leave("a")
    script.delete()
    assert script.join("b", "t").member_epoch == 2


def test_a_heartbeat_that_is_refused_leaves_nothing_behind() -> None:
    script = Script()
    assert script.join("a", regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert script.hosted.is_vacant
    assert not script.log
