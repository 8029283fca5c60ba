"""The group as a whole: what it remembers, when it may be dropped, what it costs."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.group.script import (
    GROUP,
    PROMPT,
    Script,
    commit,
    dead,
    empty,
    heartbeat,
    join,
    leave,
    preparing,
    rings,
    stable,
    sync,
)

from rota.coordinator.group.effects import GroupRecord, GroupValue, OffsetRecord, OffsetValue
from rota.coordinator.group.events import Event, Token
from rota.coordinator.group.machine import Group
from rota.coordinator.group.states import GroupState

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


def test_what_is_vacant() -> None:
    assert Script().group.is_vacant
    assert dead().group.is_vacant
    for script in (empty(), stable("a"), Script().does(commit(1)), Script().does(join(1, known=True))):
        assert not script.group.is_vacant


@pytest.mark.parametrize(
    "event", [sync(1, "a", 1), leave(1, "a"), commit(1, "a", 1), rings("join"), heartbeat(1, "a", 1)]
)
def test_what_is_vacant_stays_so_when_it_has_nothing_to_say(event: Event) -> None:
    script = Script().does(event)
    assert script.group.is_vacant
    assert not script.log


def test_who_hangs_up_is_noticed_by_its_timers() -> None:
    script = preparing("a")
    script.group.abandon(Token(-200))
    script.does(join(1, "a")).is_in(GroupState.COMPLETING, 2)
    assert "new" in script.group.members.by_id


def test_the_topics_of_a_generation_are_read_once() -> None:
    group = stable("a").group
    assert group.subscribed_topics() == frozenset({"t"})
    assert group.subscribed_topics() is group.subscribed_topics()
    assert group.subscribes("t")
    assert not group.subscribes("u")


def test_an_empty_group_of_consumers_subscribes_to_nothing_and_a_new_one_may_to_everything() -> None:
    assert stable("a").does(leave(1, "a")).group.subscribed_topics() == frozenset()
    new = Script().does(join(1)).group
    assert new.subscribed_topics() is None
    assert new.subscribes("t")
    assert not empty().group.subscribes("t")
