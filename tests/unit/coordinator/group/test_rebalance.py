"""The rebalance: its delays, who is waited for, who is removed, who leads (R25)."""

from __future__ import annotations

from tests.unit.coordinator.group.script import (
    SUBSCRIPTION,
    Script,
    arm,
    completing,
    disarm,
    fires,
    generation,
    heartbeat,
    join,
    join_reply,
    leave,
    preparing,
    refuse,
    stable,
    stored,
    sync,
)

from rota.coordinator.group import notes
from rota.coordinator.group.events import MemberId, Proto
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

THREE_S = GroupConfig()


# ---- the initial delay


def test_the_initial_delay_is_waited_out_also_by_a_member_that_is_alone() -> None:
    script = Script(config=THREE_S)
    script.does(join(1, new="a", known=True))
    assert script >> join(2, "a") << disarm("pending:a") << arm("session:a", 300_000) << arm("join", 3_000)
    assert (
        script.after(3_000)
        >> fires("join")
        << generation(1, 3_000, stored("a"))
        << join_reply(2, "a", 1, "a", ("a",))
        << arm("session:a", 13_000)
        << arm("sync", 63_000)
    )


def test_the_initial_delay_is_extended_while_members_join() -> None:
    script = Script(config=THREE_S).does(join(1, new="a")).after(2_000).does(join(2, new="b"))
    assert script.after(1_000) >> fires("join") << arm("join", 6_000)
    script.after(3_000).does(fires("join")).is_in(GroupState.COMPLETING, 1)


def test_clients_that_start_together_join_one_generation_though_the_initial_delay_is_zero() -> None:
    """Law GJ1. Kafka's append linger does the same."""
    script = (
        Script().does(join(1, new="a", initial_delay_min_ms=5)).after(4).does(join(2, new="b", initial_delay_min_ms=5))
    )
    assert script.after(1) >> fires("join") << arm("join", 10)
    script.after(5).does(fires("join")).is_in(GroupState.COMPLETING, 1)
    assert len(script.group.members) == 2


def test_the_initial_delay_is_not_shortened_because_clients_start() -> None:
    script = Script(config=THREE_S).does(join(1, new="a", initial_delay_min_ms=5))
    assert script.group.initial is not None
    assert script.group.initial.delay_ms == 3_000


def test_the_initial_delay_never_exceeds_the_rebalance_timeout() -> None:
    script = Script(config=THREE_S).does(join(1, new="a", rebalance_ms=7_000))
    rung_ms = []
    for n in range(2, 9):
        script.does(join(n, new=f"m{n}", rebalance_ms=7_000))
        if script.group.state is GroupState.PREPARING:
            script.after(script.group.initial.delay_ms if script.group.initial else 0).does(fires("join"))
            rung_ms.append(script.now_ms)
        if script.group.state is GroupState.COMPLETING:
            break
    assert rung_ms == [3_000, 6_000, 7_000]


def test_a_rebalance_timeout_below_the_delay_leaves_nothing_to_prolong() -> None:
    script = (
        Script(config=THREE_S).does(join(1, new="a", rebalance_ms=1_000)).does(join(2, new="b", rebalance_ms=1_000))
    )
    script.after(3_000).does(fires("join")).is_in(GroupState.COMPLETING, 1)


def test_a_group_that_was_empty_before_waits_again() -> None:
    script = stable("a", config=THREE_S).does(leave(1, "a")).is_in(GroupState.EMPTY, 2)
    assert script >> join(2, new="b") << arm("session:b", 300_000) << arm("join", 3_000)


def test_a_stable_group_does_not_wait_the_delay() -> None:
    script = stable("a", config=THREE_S)
    script.does(join(1, "a")).is_in(GroupState.COMPLETING, 2)


# ---- the join phase


def test_the_largest_rebalance_timeout_of_the_members_counts() -> None:
    script = stable("a")
    assert script >> join(1, new="b", rebalance_ms=90_000) << arm("session:b", 300_000) << arm("join", 90_000)


def test_dynamic_members_that_do_not_rejoin_are_removed() -> None:
    script = preparing("a", "b").does(join(1, "b")).after(60_000)
    assert (
        script
        >> fires("join")
        << disarm("session:a")
        << generation(2, 60_000, stored("b"), stored("new"))
        << join_reply(1, "b", 2, "b", ("b", "new"))
        << join_reply(-200, "new", 2, "b")
        << arm("session:new", 70_000)
        << arm("sync", 120_000)
    )
    script.emitted(notes.NOT_REJOINED, members=["a"], generation=1)


def test_static_members_that_do_not_rejoin_stay_and_another_member_leads() -> None:
    script = stable("a", "b", instances=True).does(join(1, new="new")).does(join(2, "b", instance="i-b")).after(60_000)
    script.does(fires("join")).is_in(GroupState.COMPLETING, 2)
    assert script.group.members.leader == "b"
    assert set(script.group.members.by_id) == {"a", "b", "new"}


def test_the_change_of_leader_is_logged() -> None:
    script = stable("a", "b", instances=True).does(join(1, "b", instance="i-b", protocols=BOTH)).after(60_000)
    script.does(fires("join")).emitted(notes.LEADER_ELECTED, leader="b", old_leader="a")


BOTH = (Proto("range", SUBSCRIPTION), Proto("roundrobin", SUBSCRIPTION))


def test_when_no_static_member_rejoins_the_join_phase_is_prolonged() -> None:
    script = stable("a", "b", instances=True).does(join(1, new="c")).does(leave(2, "c")).after(60_000)
    assert script >> fires("join") << arm("join", 120_000)
    script.is_in(GroupState.PREPARING, 1).emitted(notes.NO_MEMBER_REJOINED, generation=1)


def test_a_rebalance_without_any_join_leaves_an_empty_group() -> None:
    script = stable("a", "b").does(join(1, "b", protocols=BOTH)).does(leave(2, "b")).after(60_000)
    assert script >> fires("join") << disarm("session:a") << generation(2, 60_000)
    script.is_in(GroupState.EMPTY, 2)


def test_a_join_timer_that_rings_late_changes_nothing() -> None:
    for script in (completing("a"), stable("a")):
        assert script >> fires("join")


def test_a_member_that_was_removed_is_unknown() -> None:
    script = preparing("a", "b").does(join(1, "b")).after(60_000).does(fires("join"))
    assert script >> heartbeat(2, "a", 1) << refuse(2, ErrorCode.UNKNOWN_MEMBER_ID)


def test_the_stabilized_group_is_logged() -> None:
    script = preparing("a").does(join(1, "a"))
    script.emitted(notes.STABILIZED, generation=2, members=2, leader="a", protocol="range", state="CompletingRebalance")


def test_the_assignor_is_chosen_by_votes() -> None:
    script = Script()
    for n, protocols in enumerate([BOTH, BOTH[::-1], BOTH[::-1]]):
        script.does(join(n, new=f"m{n}", protocols=protocols))
    script.does(fires("join")).does(fires("join"))
    assert script.group.protocol == "roundrobin"


# ---- pending syncs


def test_a_member_that_never_syncs_is_removed() -> None:
    script = completing("a", "b").does(sync(1, "a", 1, {})).after(60_000)
    assert script >> fires("sync") << disarm("session:b") << arm("join", 120_000)
    script.is_in(GroupState.PREPARING, 1)
    script.emitted(notes.PREPARING, reason="Removing [b] on pending sync request expiration")


def test_a_leader_that_never_syncs_is_removed_and_the_others_are_answered() -> None:
    script = completing("a", "b").does(sync(1, "b", 1)).after(60_000)
    body = (script >> fires("sync")).bodies()[1]
    assert body == script.group.step(sync(1, "b", 1), 0)[0].body  # type: ignore[union-attr]  # REBALANCE_IN_PROGRESS
    script.is_in(GroupState.PREPARING, 1)
    script.does(join(2, "b")).is_in(GroupState.COMPLETING, 2)
    assert script.group.members.leader == "b"


def test_without_any_sync_the_group_becomes_empty() -> None:
    script = completing("a").after(60_000)
    assert script >> fires("sync") << disarm("session:a") << disarm("join") << generation(2, 60_000)


def test_a_sync_timer_that_rings_late_changes_nothing() -> None:
    for script in (stable("a"), preparing("a"), Script()):
        assert script >> fires("sync")


def test_heartbeats_during_the_join_phase_get_rebalance_in_progress() -> None:
    script = preparing("a")
    assert script >> heartbeat(1, "a", 1) << refuse(1, ErrorCode.REBALANCE_IN_PROGRESS)
    assert MemberId("a") in script.group.members.by_id
