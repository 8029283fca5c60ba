"""One group id: of the classic protocol, of the consumer protocol, and how it changes while it is Empty."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.talk import Talk, durable
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.group.events import Heartbeat, Leave, Leaver, MemberId
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode


def test_a_consumer_heartbeat_to_an_empty_classic_group_makes_it_a_consumer_group() -> None:
    talk = Talk()
    talk.commit("", -1)
    token = talk.classic_join()
    talk.advance(0)
    joined = talk.replies.pop(token)
    leaver = Leave(talk.token(), (Leaver(MemberId(joined.member_id), None),))
    talk.send(leaver)
    assert talk.hosted.state is GroupState.EMPTY
    before = len(talk.log)
    assert talk.join("a", "t").member_epoch == 2
    assert talk.log[before][1] is None  # the tombstone of the classic group stands before the first record
    assert talk.hosted.summary.kind == "consumer"
    assert talk.hosted.offsets  # they belong to the id
    for compacted in (False, True):
        assert durable(talk.restarted(compacted=compacted).hosted) == durable(talk.hosted)


def test_a_classic_join_to_an_empty_consumer_group_makes_it_a_classic_group() -> None:
    talk = Talk()
    talk.join("a", "t")
    talk.commit("a", 2)
    talk.leave("a")
    token = talk.classic_join()
    talk.advance(0)
    assert talk.replies[token].error is ErrorCode.NONE
    assert talk.hosted.summary.kind == "classic"
    assert talk.hosted.offsets
    for compacted in (False, True):
        assert durable(talk.restarted(compacted=compacted).hosted) == durable(talk.hosted)


def test_a_classic_heartbeat_of_a_consumer_member_is_unknown() -> None:
    talk = two_members()
    assert talk.send(Heartbeat(talk.token(), MemberId("a"), None, 3)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert talk.hosted.heartbeat(MemberId("a"), None, 3, 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_consumer_group_is_deleted_with_its_offsets() -> None:
    talk = Talk()
    talk.join("a", "t")
    talk.commit("a", 2)
    assert talk.delete() is ErrorCode.NON_EMPTY_GROUP
    talk.leave("a")
    before = len(talk.log)
    assert talk.delete() is ErrorCode.NONE
    assert all(value is None for _, value in talk.log[before:])
    assert [kind for kind, _ in talk.records(before)] == ["TargetEpochKey", "PartitionMetadataKey", "EpochKey"]
    assert talk.hosted.is_vacant
    assert talk.restarted().hosted.is_vacant
    assert talk.restarted(compacted=True).hosted.is_vacant


def test_a_deleted_group_begins_again_at_epoch_2() -> None:
    talk = Talk()
    talk.join("a", "t")
    talk.leave("a")
    talk.delete()
    assert talk.join("b", "t").member_epoch == 2


def test_a_heartbeat_that_is_refused_leaves_nothing_behind() -> None:
    talk = Talk()
    assert talk.join("a", regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert talk.hosted.is_vacant
    assert not talk.log
