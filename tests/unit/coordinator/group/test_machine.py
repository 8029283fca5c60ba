"""The group as a whole: what it remembers, when it may be dropped, and how it is loaded."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.group.script import (
    GROUP,
    PROMPT,
    SESSION_MS,
    Script,
    arm,
    commit,
    completing,
    dead,
    disarm,
    empty,
    fires,
    generation,
    given,
    heartbeat,
    join,
    join_refused,
    join_reply,
    leave,
    preparing,
    refuse,
    stable,
    stored,
    sync,
    sync_refused,
)

from rota.coordinator.group import notes
from rota.coordinator.group.effects import GroupRecord, GroupValue, MemberValue, OffsetRecord, OffsetValue
from rota.coordinator.group.events import Event, MemberId
from rota.coordinator.group.join import JOIN_AGAIN_MS
from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

OFFSET = OffsetValue(offset=1, leader_epoch=-1, metadata="", commit_ms=0)


def test_a_record_is_the_whole_truth_for_its_key_and_none_takes_it_away() -> None:
    group = Group(GROUP, PROMPT)
    value = GroupValue(protocol_type="consumer", generation=7, protocol=None, leader=None, state_ms=3)
    group.replay(OffsetRecord(GROUP, "t", 0, OFFSET))
    group.replay(GroupRecord(GROUP, value))
    assert (group.hard, group.generation, group.offsets) == (value, 7, {("t", 0): OFFSET})
    group.replay(OffsetRecord(GROUP, "t", 0, None))
    group.replay(OffsetRecord(GROUP, "t", 1, None))
    group.replay(GroupRecord(GROUP, None))
    assert (group.hard, group.generation, group.offsets) == (None, 0, {})


def test_unknown_and_dead_groups_are_vacant() -> None:
    assert Script().group.is_vacant
    assert dead().group.is_vacant
    for script in (empty(), stable("a"), Script().does(commit(1)), Script().does(join(1, known=True))):
        assert not script.group.is_vacant


@pytest.mark.parametrize(
    "event", [sync(1, "a", 1), leave(1, "a"), commit(1, "a", 1), fires("join"), heartbeat(1, "a", 1)]
)
def test_refused_events_leave_a_vacant_group_vacant(event: Event) -> None:
    script = Script().does(event)
    assert script.group.is_vacant
    assert not script.log


def test_the_topics_of_a_generation_are_read_once() -> None:
    group = stable("a").group
    assert group.subscribed_topics() == frozenset({"t"})
    assert group.subscribed_topics() is group.subscribed_topics()
    assert group.is_subscribed_to("t")
    assert not group.is_subscribed_to("u")


def test_an_empty_group_of_consumers_subscribes_to_nothing_and_a_new_one_may_to_everything() -> None:
    assert stable("a").does(leave(1, "a")).group.subscribed_topics() == frozenset()
    new = Script().does(join(1)).group
    assert new.subscribed_topics() is None
    assert new.is_subscribed_to("t")
    assert not empty().group.is_subscribed_to("t")


def test_a_loaded_generation_with_assignments_is_stable_with_full_sessions() -> None:
    script = stable("a", "b").after(100).reloaded()
    assert script.is_in(GroupState.STABLE, 1) << arm("session:a", 10_100) << arm("session:b", 10_100)
    assert script >> sync(1, "b", 1) << given(1, b"B") >> heartbeat(2, "a", 1) << refuse(2, ErrorCode.NONE)
    script.emitted(notes.LOADED, state="Stable", generation=1, members=2)


def test_the_leader_is_the_same_after_a_crash() -> None:
    script = stable("a", "b").reloaded()
    script.out.clear()
    script.does(join(1, "b")).is_in(GroupState.STABLE, 1)
    script.does(join(2, "a")).is_in(GroupState.PREPARING, 1)


def test_a_loaded_group_continues_the_generation_before_an_unfinished_rebalance() -> None:
    script = preparing("a").reloaded()
    script.out.clear()
    assert script.is_in(GroupState.STABLE, 1) >> heartbeat(1, "a", 1) << refuse(1, ErrorCode.NONE)
    assert script >> join(2, "new") << join_refused(2, ErrorCode.UNKNOWN_MEMBER_ID, "new")


def test_after_loading_an_unknown_member_gets_a_new_id_for_a_while() -> None:
    """G3a. After UNKNOWN_MEMBER_ID librdkafka would wait for seconds."""
    script = stable("a").reloaded().after(JOIN_AGAIN_MS - 1)
    script.out.clear()
    assert (
        script
        >> join(1, "lost", new="b", known=True)
        << arm("pending:b", JOIN_AGAIN_MS - 1 + SESSION_MS)
        << join_refused(1, ErrorCode.MEMBER_ID_REQUIRED, "b")
        >> sync(2, "lost", 1)
        << sync_refused(2, ErrorCode.UNKNOWN_MEMBER_ID)
        >> join(3, "lost", instance="i", known=False)
        << join_refused(3, ErrorCode.UNKNOWN_MEMBER_ID, "lost")
    )
    assert script.after(1) >> join(4, "lost", known=True) << join_refused(4, ErrorCode.UNKNOWN_MEMBER_ID, "lost")


def test_a_generation_that_was_begun_and_never_assigned_is_followed_by_a_higher_one() -> None:
    script = completing("a", "b").after(50).reloaded()
    assert (
        script.is_in(GroupState.PREPARING, 1)
        << arm("session:a", 10_050)
        << arm("session:b", 10_050)
        << arm("join", 60_050)
    )
    reason = "Freshly-loaded group has begun generation 1 unassigned"
    script.emitted(notes.PREPARING, reason=reason)
    assert script >> heartbeat(1, "a", 1) << refuse(1, ErrorCode.REBALANCE_IN_PROGRESS)
    assert script >> sync(2, "a", 1, {"a": b"0"}) << sync_refused(2, ErrorCode.REBALANCE_IN_PROGRESS)
    assert (
        script
        >> join(3, "b")
        >> join(4, "a")
        << disarm("join")
        << generation(2, 50, stored("a"), stored("b"))
        << join_reply(4, "a", 2, "a", ("a", "b"))
        << join_reply(3, "b", 2, "a")
        << arm("sync", 60_050)
    )


def test_its_static_instances_and_offsets_are_kept() -> None:
    script = stable("a", instances=True).does(commit(1, "a", 1)).does(join(2, "a", instance="i-a"))
    again = script.is_in(GroupState.COMPLETING, 2).reloaded()
    again.out.clear()
    again.is_in(GroupState.PREPARING, 2)
    assert again.group.members.by_instance == {"i-a": "a"}
    assert again.group.offsets.keys() == {("t", 0)}


def test_members_that_do_not_rejoin_after_that_are_removed() -> None:
    script = completing("a", "b").reloaded()
    script.out.clear()
    script.does(join(1, "a")).after(60_000)
    assert (script >> fires("join")).includes(generation(2, 60_000, stored("a")))


def test_a_loaded_empty_group_is_empty() -> None:
    script = stable("a").does(leave(1, "a")).reloaded()
    assert script.is_in(GroupState.EMPTY, 2)
    assert (script.group.protocol_type, script.group.describe().members) == ("consumer", ())
    assert empty().reloaded().is_in(GroupState.EMPTY, 0)


def test_a_loaded_simple_group_has_its_offsets() -> None:
    script = Script().does(commit(1)).reloaded()
    script.is_in(GroupState.EMPTY, 0)
    assert script.group.offsets.keys() == {("t", 0)}
    assert not script.group.is_vacant


def test_a_group_that_was_larger_than_is_allowed_now_rebalances() -> None:
    small = GroupConfig(initial_rebalance_delay_ms=0, group_size_max=1)
    script = stable("a", "b").reloaded(small)
    script.out.clear()
    script.is_in(GroupState.PREPARING, 1)
    script.emitted(notes.PREPARING, reason="Freshly-loaded group g (size 2) is over capacity 1")


def test_a_member_of_an_old_record_has_its_session_as_rebalance_timeout() -> None:
    old = MemberValue(
        member_id=MemberId("a"),
        instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_ms=-1,
        session_ms=7_000,
        subscription=b"",
        assignment=b"x",
    )
    value = GroupValue(
        protocol_type="consumer", generation=4, protocol="range", leader=MemberId("a"), state_ms=-1, members=(old,)
    )
    group = Group(GROUP, PROMPT)
    group.replay(GroupRecord(GROUP, value))
    group.loaded(0)
    assert group.members.rebalance_ms == 7_000
    assert (group.state, group.generation) == (GroupState.STABLE, 4)
