"""Topics that come, go and grow: a conversation for each."""

from __future__ import annotations

from tests.unit.client.group.script import (
    ENDED,
    FOUND,
    POLL,
    Done,
    Script,
    joined,
    joining,
    knows,
    leading,
    reads,
    stable,
    subscribes,
    synced,
)

from rota.client.group import events
from rota.client.group.states import MemberState

S = MemberState


def test_a_pattern_follows_created_and_deleted_topics() -> None:
    script = Script(pattern="[tu]", counts={"t": 1}).does(POLL, FOUND, reads(t=1), joined(1), synced("t-0"), Done())
    script.does(ENDED)
    assert script >> knows(t=1, v=1)
    assert script >> knows(t=1, u=1) << ("wake",)
    assert script.m.rejoin == "subscription has changed"


def test_a_pattern_wants_all_topics_and_names_want_their_own() -> None:
    script = Script("t")
    assert script >> subscribes("t")
    assert script >> subscribes("t", "u") << ("want", ("t", "u"))
    assert Script(pattern="t").m.followed is None


def test_names_are_waited_for() -> None:
    script = stable()
    assert script >> knows(t=2, u=1)
    assert script >> knows()


def test_another_subscription_is_joined_with_by_the_next_poll() -> None:
    script = stable()
    assert script >> subscribes("t", "u") << ("want", ("t", "u")) << ("wake",)
    assert script.m.is_due
    script.is_in(S.STABLE, 1)


def test_an_unrequested_metadata_refresh_is_accepted() -> None:
    script = stable()
    assert script >> events.MetadataRefreshed(99, script.m.metadata)


def test_partitions_that_are_added_have_the_leader_join_again() -> None:
    script = leading()
    assert script >> knows(t=2)
    assert script >> knows(t=3) << ("wake",)
    assert script.m.rejoin == "cached metadata has changed"


def test_a_follower_watches_no_partitions() -> None:
    assert stable() >> knows(t=3)


def test_partitions_that_are_added_while_it_synced_are_seen() -> None:
    script = joining().does(joined(1, leader="a"), knows(t=5), synced("t-0", "t-1"), Done(), Done(), Done())
    assert script.request("join").reason == "cached metadata has changed"


def test_a_deleted_topic_makes_the_leader_rejoin() -> None:
    script = leading()
    assert script >> knows() << ("wake",)
    assert script.m.rejoin == "cached metadata has changed"
