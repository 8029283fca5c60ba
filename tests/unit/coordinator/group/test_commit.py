"""OffsetCommit and OffsetDelete: a conversation for each branch, by state."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.coordinator.group.script import (
    Script,
    arm,
    commit,
    committed,
    completing,
    dead,
    empty,
    fires,
    forgotten,
    join,
    leave,
    preparing,
    refuse,
    reply,
    stable,
    topics_deleted,
)

from rota.coordinator.group import notes
from rota.coordinator.group.effects import OffsetRecord, OffsetsDropped, OffsetValue
from rota.coordinator.group.events import (
    Commit,
    DropOffsets,
    ExpireOffsets,
    MemberId,
    Proto,
    Token,
)
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

OK = ErrorCode.NONE


@pytest.mark.parametrize("at", [stable, preparing])
def test_a_member_commits_in_its_generation_also_while_joins_are_awaited(at: Callable[..., Script]) -> None:
    assert at("a").after(3) >> commit(1, "a", 1) << committed(3) << reply(1, OK)


def test_all_fields_of_a_committed_offset_are_stored() -> None:
    script = stable("a").after(4)
    event = Commit(
        token=Token(1),
        member_id=MemberId("a"),
        instance_id=None,
        generation=1,
        records=(
            OffsetRecord("g", "t", 3, OffsetValue(9, 2, "note", 4, None, b"i" * 16)),
            OffsetRecord("g", "t", 4, OffsetValue(9, -1, "note", 4, 1_000)),
            OffsetRecord("g", "u", 0, OffsetValue(0, -1, "", 4)),
        ),
    )
    assert script.does(event)
    assert script.group.offsets == {
        ("t", 3): OffsetValue(offset=9, leader_epoch=2, metadata="note", commit_ms=4, topic_id=b"i" * 16),
        ("t", 4): OffsetValue(offset=9, leader_epoch=-1, metadata="note", commit_ms=4, expire_ms=1_000),
        ("u", 0): OffsetValue(offset=0, leader_epoch=-1, metadata="", commit_ms=4),
    }


def test_commits_are_refused_between_generation_and_assignment() -> None:
    assert completing("a") >> commit(1, "a", 1) << refuse(1, ErrorCode.REBALANCE_IN_PROGRESS)


def test_a_commit_keeps_its_member_alive() -> None:
    script = stable("a", "b").after(9_000).does(commit(1, "b", 1)).after(1_000)
    assert script >> fires("session:b") << arm("session:b", 19_000)


STALE = [
    (commit(1, "a", 0), ErrorCode.ILLEGAL_GENERATION),
    (commit(1, "a", 2), ErrorCode.ILLEGAL_GENERATION),
    (commit(1, "a", -1), ErrorCode.ILLEGAL_GENERATION),
    (commit(1, "x", 1), ErrorCode.UNKNOWN_MEMBER_ID),
    (commit(1, "", 1), ErrorCode.UNKNOWN_MEMBER_ID),
    (commit(1, "", -1), ErrorCode.UNKNOWN_MEMBER_ID),
    (commit(1, "a", 1, instance="j"), ErrorCode.UNKNOWN_MEMBER_ID),
    (commit(1, "", -1, instance="j"), ErrorCode.UNKNOWN_MEMBER_ID),
]


@pytest.mark.parametrize(("wrong", "error"), STALE)
@pytest.mark.parametrize("at", [stable, preparing, completing])
def test_a_stale_commit_writes_nothing(at: Callable[..., Script], wrong: Commit, error: ErrorCode) -> None:
    script = at("a")
    assert script >> wrong << refuse(1, error)
    assert not script.group.offsets


def test_a_fenced_member_writes_nothing() -> None:
    script = stable("a", instances=True)
    assert script >> commit(1, "old", 1, instance="i-a") << refuse(1, ErrorCode.FENCED_INSTANCE_ID)
    script.emitted(notes.FENCED, member="old", holder="a", operation="offset-commit")


# ---- simple consumers


@pytest.mark.parametrize("event", [commit(1), commit(1, "any", -1), commit(1, "any", -1, instance="any")])
def test_a_commit_without_a_generation_is_accepted_for_a_group_without_members(event: Commit) -> None:
    for script in (Script(), empty(), stable("a").does(leave(9, "a"))):
        assert script >> event << committed(0) << reply(1, OK)


def test_a_first_commit_makes_a_simple_group_without_a_group_record() -> None:
    script = Script()
    assert script.group.is_vacant
    assert script >> commit(1) << committed(0) << reply(1, OK)
    assert not script.group.is_vacant
    assert script.group.hard is None


def test_a_commit_with_a_generation_to_an_unknown_group_is_illegal_generation() -> None:
    assert Script() >> commit(1, "a", 1) << refuse(1, ErrorCode.ILLEGAL_GENERATION)


def test_a_generation_of_an_empty_group_has_no_members() -> None:
    assert empty() >> commit(1, "a", 0) << refuse(1, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_pending_member_does_not_keep_simple_consumers_out() -> None:
    script = Script().does(join(1, new="a", known=True))
    assert script >> commit(2) << committed(0) << reply(2, OK)


def test_a_dead_group_sends_its_members_to_look_for_its_coordinator() -> None:
    assert dead() >> commit(1, "a", -1) << refuse(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)


# ---- OffsetDelete


def drop(token: int, *topics: str) -> DropOffsets:
    return DropOffsets(Token(token), tuple((topic, 0) for topic in topics))


def dropped(*answers: tuple[str, ErrorCode]) -> OffsetsDropped:
    return OffsetsDropped(OK, tuple((topic, 0, error) for topic, error in answers))


def test_offsets_of_an_empty_group_are_dropped() -> None:
    script = Script().does(commit(1))
    assert script >> drop(2, "t", "u") << forgotten() << reply(2, dropped(("t", OK), ("u", OK)))
    assert not script.group.offsets


def test_a_simple_group_outlives_its_last_offset_until_the_next_look() -> None:
    for ends in (drop(2, "t"), topics_deleted("t")):
        script = Script().does(commit(1)).does(ends)
        assert not script.group.is_vacant
        assert script.group.hard is None
        assert script.does(ExpireOffsets(10**9)).group.is_vacant


def test_deleted_topics_leave_an_unknown_group_vacant() -> None:
    assert Script().does(topics_deleted("t")).group.is_vacant


def test_offsets_of_a_subscribed_topic_are_not() -> None:
    script = stable("a").does(commit(1, "a", 1)).does(commit(2, "a", 1, topic="u"))
    assert (
        script
        >> drop(3, "t", "u")
        << forgotten("u")
        << reply(3, dropped(("t", ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), ("u", OK)))
    )


def test_offsets_are_not_dropped_while_subscriptions_are_unknown() -> None:
    script = Script().does(commit(1)).does(join(2, new="a")).is_in(GroupState.PREPARING, 0)
    assert script >> drop(3, "t") << reply(3, dropped(("t", ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)))


def test_a_group_of_another_kind_must_be_empty() -> None:
    connect = (Proto("v1", b""),)
    script = Script().does(join(1, new="a", protocol_type="connect", protocols=connect))
    assert script >> drop(2, "t") << refuse(2, OffsetsDropped(ErrorCode.NON_EMPTY_GROUP))
    script.does(leave(3, "a")).does(fires("join")).does(commit(4))
    assert script >> drop(5, "t") << forgotten() << reply(5, dropped(("t", OK)))


def test_dropping_offsets_of_an_unknown_group_is_group_id_not_found() -> None:
    for script in (Script(), dead()):
        assert script >> drop(1, "t") << refuse(1, OffsetsDropped(ErrorCode.GROUP_ID_NOT_FOUND))
