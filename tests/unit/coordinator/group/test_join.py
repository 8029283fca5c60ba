"""JoinGroup: a conversation for each branch, by state (R20-R24)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.coordinator.group.script import (
    GROUP,
    SUBSCRIPTION,
    Script,
    arm,
    completing,
    created,
    dead,
    disarm,
    empty,
    fires,
    generation,
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
from rota.coordinator.group.events import Join, MemberId, Proto
from rota.coordinator.group.join import PENDING_MEMBERS_MAX, _fits_record
from rota.coordinator.group.members import Member
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

ROUNDROBIN = (Proto("roundrobin", SUBSCRIPTION),)
CHANGED = (Proto("range", b"\0\0\0\0\0\1\0\1u\xff\xff\xff\xff"),)
TWO_AT_MOST = GroupConfig(initial_rebalance_delay_ms=0, group_size_max=2)


# ---- members without an id


def test_a_first_member_must_join_again_with_its_id_and_becomes_the_leader() -> None:
    script = Script()
    assert (
        script
        >> join(1, new="a", known=True)
        << created(0)
        << arm("pending:a", 10_000)
        << join_refused(1, ErrorCode.MEMBER_ID_REQUIRED, "a")
        >> join(2, "a")
        << disarm("pending:a")
        << arm("session:a", 300_000)
        << arm("join", 0)
        >> fires("join")
        << generation(1, 0, stored("a"))
        << join_reply(2, "a", 1, "a", ("a",))
        << arm("session:a", 10_000)
        << arm("sync", 60_000)
    )
    script.is_in(GroupState.COMPLETING, 1)


def test_an_old_client_becomes_a_member_at_once() -> None:
    script = Script()
    assert script >> join(1, new="a") << created(0) << arm("session:a", 300_000) << arm("join", 0)
    script.emitted(notes.MEMBER_ADDED, member="a", state="Empty", group=GROUP)


def test_a_static_member_becomes_one_at_once() -> None:
    script = Script()
    assert script >> join(1, new="i-1", instance="i") << created(0) << arm("session:i-1", 300_000) << arm("join", 0)
    script.emitted(notes.STATIC_ADDED, member="i-1", instance="i")


def test_a_member_that_joins_a_stable_group_waits_and_has_it_rebalance() -> None:
    script = stable("a")
    assert script >> join(1, new="b", reason="scaled up") << arm("session:b", 300_000) << arm("join", 60_000)
    script.is_in(GroupState.PREPARING, 1)
    script.emitted(
        notes.PREPARING,
        generation=1,
        state="PreparingRebalance",
        reason="Adding new member b with group instance id None",
        client_reason="scaled up",
    )


def test_a_member_that_joins_between_generation_and_assignment_has_it_rebalance_at_once() -> None:
    script = completing("a", "b").does(sync(1, "b", 1))
    assert (
        script
        >> join(2, new="c")
        << arm("session:c", 300_000)
        << sync_refused(1, ErrorCode.REBALANCE_IN_PROGRESS)
        << disarm("sync")
        << arm("join", 60_000)
    )
    script.is_in(GroupState.PREPARING, 1)


def test_a_member_that_joins_while_joins_are_awaited_waits_with_them() -> None:
    script = preparing("a")
    assert script >> join(1, new="b") << arm("session:b", 300_000)


def test_the_join_phase_waits_for_a_pending_member() -> None:
    script = preparing("a").does(join(1, new="b", known=True))
    assert script >> join(2, "a")
    assert (
        script
        >> join(3, "b")
        << disarm("pending:b")
        << arm("session:b", 300_000)
        << disarm("join")
        << generation(2, 0, stored("a"), stored("new"), stored("b"))
        << join_reply(2, "a", 2, "a", ("a", "new", "b"))
        << join_reply(-200, "new", 2, "a")
        << arm("session:new", 10_000)
        << join_reply(3, "b", 2, "a")
        << arm("session:b", 10_000)
        << arm("sync", 60_000)
    )


def test_a_pending_id_is_no_id_for_a_static_member() -> None:
    script = Script().does(join(1, new="a", known=True))
    assert script >> join(2, "a", instance="i") << join_refused(2, ErrorCode.UNKNOWN_SERVER_ERROR)


def test_the_number_of_pending_members_is_limited() -> None:
    script = Script()
    for n in range(PENDING_MEMBERS_MAX + 1):
        script.does(join(n, new=f"m{n}", known=True))
    assert len(script.group.members.pending) == PENDING_MEMBERS_MAX
    assert script >> join(-1, "m0") << join_refused(-1, ErrorCode.UNKNOWN_MEMBER_ID, "m0")


# ---- who is refused


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_out_of_bounds_is_refused_before_a_group_is_made(session_ms: int) -> None:
    script = Script()
    assert script >> join(1, session_ms=session_ms) << join_refused(1, ErrorCode.INVALID_SESSION_TIMEOUT)
    assert script.group.is_vacant


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_a_session_are_allowed(session_ms: int) -> None:
    script = Script().does(join(1, session_ms=session_ms))
    script.is_in(GroupState.PREPARING, 0)


def test_a_member_id_of_an_unknown_group_makes_no_group() -> None:
    script = Script()
    assert script >> join(1, "ghost") << join_refused(1, ErrorCode.UNKNOWN_MEMBER_ID, "ghost")
    assert script.group.is_vacant


@pytest.mark.parametrize("wrong", [join(1, protocols=()), join(1, protocol_type="")])
def test_a_refused_first_member_still_creates_the_group_as_in_kafka(wrong: Join) -> None:
    script = Script()
    assert script >> wrong << created(0) << join_refused(1, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert not script.group.is_vacant


@pytest.mark.parametrize(
    "wrong", [join(1, protocols=ROUNDROBIN), join(1, protocol_type="connect"), join(1, protocols=())]
)
@pytest.mark.parametrize("at", [stable, completing, preparing])
def test_protocols_that_not_all_members_know_are_refused(at: Callable[..., Script], wrong: Join) -> None:
    script = at("a")
    before = script.group.state
    assert script >> wrong << join_refused(1, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert script.group.state is before


def test_a_member_cannot_change_to_protocols_that_the_others_do_not_know() -> None:
    script = stable("a", "b")
    assert script >> join(1, "b", protocols=ROUNDROBIN) << join_refused(1, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "b")


def test_an_id_given_is_forgotten_in_time_and_is_then_unknown() -> None:
    script = Script().does(join(1, new="a", known=True)).after(10_000)
    assert script >> fires("pending:a") >> join(2, "a") << join_refused(2, ErrorCode.UNKNOWN_MEMBER_ID, "a")


@pytest.mark.parametrize("at", [stable, completing, preparing])
def test_an_unknown_member_is_refused_in_every_state(at: Callable[..., Script]) -> None:
    script = at("a")
    assert script >> join(1, "x") << join_refused(1, ErrorCode.UNKNOWN_MEMBER_ID, "x")


def test_an_unknown_member_is_refused_by_an_empty_group() -> None:
    assert empty() >> join(1, "x") << join_refused(1, ErrorCode.UNKNOWN_MEMBER_ID, "x")


def test_an_unknown_instance_with_a_known_member_id_is_refused() -> None:
    script = stable("a", instances=True)
    assert script >> join(1, "a", instance="j") << join_refused(1, ErrorCode.UNKNOWN_MEMBER_ID, "a")


def test_a_fenced_member_gets_the_error() -> None:
    script = stable("a", instances=True)
    assert script >> join(1, "old", instance="i-a") << join_refused(1, ErrorCode.FENCED_INSTANCE_ID, "old")
    script.emitted(notes.FENCED, member="old", instance="i-a", holder="a", operation="join-group")


@pytest.mark.parametrize("member", ["", "a"])
def test_a_join_of_a_dead_group_is_coordinator_not_available(member: str) -> None:
    refused = join_refused(1, ErrorCode.COORDINATOR_NOT_AVAILABLE, member)
    assert dead() >> join(1, member) << refused


# ---- group.max.size


def test_a_full_group_admits_no_member() -> None:
    script = stable("a", "b", config=TWO_AT_MOST)
    assert script >> join(1, new="c") << join_refused(1, ErrorCode.GROUP_MAX_SIZE_REACHED)
    script.is_in(GroupState.STABLE, 1).emitted(notes.GROUP_FULL, members=2)


def test_a_member_of_a_full_group_may_rejoin() -> None:
    script = stable("a", "b", config=TWO_AT_MOST)
    assert script >> join(1, "b") << join_reply(1, "b", 1, "a")


def test_after_the_size_limit_shrank_the_last_member_to_rejoin_is_removed() -> None:
    script = stable("a", "b", "c", config=GroupConfig(initial_rebalance_delay_ms=0)).reloaded(TWO_AT_MOST)
    script.out.clear()
    script.is_in(GroupState.PREPARING, 1).does(join(1, "a")).does(join(2, "b"))
    assert (
        script
        >> join(3, "c")
        << disarm("session:c")
        << join_refused(3, ErrorCode.GROUP_MAX_SIZE_REACHED)
        << disarm("join")
        << generation(2, 0, stored("a"), stored("b"))
        << join_reply(1, "a", 2, "a", ("a", "b"))
        << join_reply(2, "b", 2, "a")
        << arm("sync", 60_000)
    )


def test_a_waiting_member_of_a_full_group_may_repeat_its_join() -> None:
    script = stable("a", "b", "c").reloaded(TWO_AT_MOST)
    script.out.clear()
    script.does(join(1, "a")).does(join(2, "b"))
    assert script >> join(3, "b") << join_refused(2, ErrorCode.REBALANCE_IN_PROGRESS, "b")


# ---- members with an id


def test_in_preparing_a_member_is_updated_and_waits_for_the_others() -> None:
    script = preparing("a", "b")
    assert script >> join(1, "b", protocols=CHANGED, rebalance_ms=90_000)
    member = script.group.members.by_id[join(1, "b").member_id]
    assert (member.protocols, member.rebalance_ms) == (CHANGED, 90_000)


def test_the_last_member_to_rejoin_begins_the_generation() -> None:
    script = preparing("a")
    assert (
        script
        >> join(1, "a")
        << disarm("join")
        << generation(2, 0, stored("a"), stored("new"))
        << join_reply(1, "a", 2, "a", ("a", "new"))
        << join_reply(-200, "new", 2, "a")
        << arm("session:new", 10_000)
        << arm("sync", 60_000)
    )


def test_a_repeated_join_replaces_the_waiting_join() -> None:
    script = preparing("a", "b")
    assert (
        script
        >> join(1, "b")
        >> join(2, "b")
        << join_refused(1, ErrorCode.REBALANCE_IN_PROGRESS, "b")
        >> join(3, "b")
        << join_refused(2, ErrorCode.REBALANCE_IN_PROGRESS, "b")
    )


def test_in_completing_a_member_that_missed_the_answer_gets_it_again() -> None:
    script = completing("a", "b")
    assert (
        script >> join(1, "b") << join_reply(1, "b", 1, "a") >> join(2, "a") << join_reply(2, "a", 1, "a", ("a", "b"))
    )
    script.is_in(GroupState.COMPLETING, 1)


def test_in_completing_a_member_that_changed_has_it_rebalance() -> None:
    script = completing("a", "b")
    assert script >> join(1, "b", protocols=CHANGED) << disarm("sync") << arm("join", 60_000)
    script.emitted(notes.PREPARING, reason="Updating metadata for member b during CompletingRebalance")


def test_in_stable_an_unchanged_follower_gets_its_generation() -> None:
    script = stable("a", "b")
    assert script >> join(1, "b") << join_reply(1, "b", 1, "a")
    script.is_in(GroupState.STABLE, 1)


def test_in_stable_a_follower_that_changed_has_it_rebalance() -> None:
    script = stable("a", "b")
    assert script >> join(1, "b", protocols=CHANGED) << arm("join", 60_000)
    script.emitted(notes.PREPARING, reason="Updating metadata for member b during Stable")


def test_in_stable_the_leader_has_it_rebalance_though_nothing_changed() -> None:
    script = stable("a", "b")
    assert script >> join(1, "a", reason="partitions were added") << arm("join", 60_000)
    script.is_in(GroupState.PREPARING, 1)
    script.emitted(
        notes.PREPARING, reason="Leader a re-joining group during Stable", client_reason="partitions were added"
    )


def test_a_leader_that_is_alone_gets_its_next_generation_at_once() -> None:
    script = stable("a")
    assert (
        script
        >> join(1, "a")
        << disarm("join")
        << generation(2, 0, stored("a"))
        << join_reply(1, "a", 2, "a", ("a",))
        << arm("sync", 60_000)
    )


def test_a_new_member_that_never_got_its_answer_is_kept_five_minutes() -> None:
    script = preparing("a").after(299_999)
    assert script >> fires("session:new") << arm("session:new", 300_000)
    assert script.after(1) >> fires("session:new") << join_refused(-200, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_new_member_may_already_send_heartbeats() -> None:
    script = preparing("a")
    assert script >> heartbeat(1, "new", 1) << refuse(1, ErrorCode.REBALANCE_IN_PROGRESS)


# ---- CO3: the record of a group has to fit in the offsets topic

LIMITED = GroupConfig(initial_rebalance_delay_ms=0, record_bytes_max=1_000)


def of_bytes(size: int, *names: str) -> tuple[Proto, ...]:
    return tuple(Proto(name, bytes(size)) for name in names or ("range",))


def test_only_the_member_that_makes_the_record_too_large_is_refused() -> None:
    script = Script(config=LIMITED).does(join(1, new="a", protocols=of_bytes(400)))
    assert script >> join(2, new="b", protocols=of_bytes(400)) << join_refused(2, ErrorCode.UNKNOWN_SERVER_ERROR)
    script.emitted(notes.RECORD_TOO_LARGE, member="", members=1)
    script.does(join(3, new="c", protocols=of_bytes(200)))
    script.does(fires("join")).does(fires("join")).is_in(GroupState.COMPLETING, 1)
    assert set(script.group.members.by_id) == {"a", "c"}


def test_the_group_record_fits_whichever_member_leads() -> None:
    script = Script(config=LIMITED).does(join(1, new="a", protocols=of_bytes(10)))
    too_much = join(2, new="b" * 350, protocols=of_bytes(380))
    assert script >> too_much << join_refused(2, ErrorCode.UNKNOWN_SERVER_ERROR)


def test_the_protocol_type_of_the_first_member_and_the_names_of_assignors_count() -> None:
    refused = join_refused(1, ErrorCode.UNKNOWN_SERVER_ERROR)
    long_type = replace(join(1, new="a", protocols=of_bytes(500)), protocol_type="t" * 500)
    for too_much in (long_type, join(1, new="a", protocols=of_bytes(500, "n" * 500))):
        (Script(config=LIMITED) >> too_much).includes(refused)


def test_it_is_not_even_given_an_id() -> None:
    script = Script(config=LIMITED)
    refused = join_refused(1, ErrorCode.UNKNOWN_SERVER_ERROR)
    (script >> join(1, new="a", protocols=of_bytes(1_000), known=True)).includes(refused)
    assert not script.group.members.pending


def test_a_member_that_rejoins_with_too_large_metadata_keeps_its_earlier_metadata() -> None:
    script = stable("a", "b", config=LIMITED)
    before = script.group.hard
    too_much = join(1, "b", protocols=of_bytes(1_000))
    assert script >> too_much << join_refused(1, ErrorCode.UNKNOWN_SERVER_ERROR, "b")
    assert script.is_in(GroupState.STABLE, 1).group.hard is before
    assert script >> heartbeat(2, "b", 1) << refuse(2, ErrorCode.NONE)


OTHER_JOINS: tuple[dict[str, object], ...] = (
    {},
    {"protocols": of_bytes(90)},
    {"protocols": of_bytes(5, "range", "sticky")},
    {"client_id": "client of another name"},
    {"client_host": "/host"},
    {"instance_id": "i-other"},
    {"instance_id": "i-b", "member_id": "", "fresh_id": "c" * 60},
    {"session_ms": 5_000, "rebalance_ms": 5_000},
    {"protocol_type": "type" * 20},
    {
        "member_id": "",
        "fresh_id": "😀" * 20,
        "instance_id": None,
        "client_id": "",
        "protocols": of_bytes(9, "a", "bcde"),
    },
)


def test_co3_a_join_that_repeats_the_member_has_the_size_that_it_would_be_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = stable("a", "b", instances=True).group
    first = join(9, "b", instance="i-b")
    assert group.members.by_id[MemberId("b")].is_repeated_by(first)

    def fitting() -> list[bool]:
        found = []
        for record_bytes_max in range(150, 600):
            group.config = replace(group.config, record_bytes_max=record_bytes_max)
            found += [_fits_record(group, replace(first, **other)) for other in OTHER_JOINS]  # type: ignore[arg-type]
        return found

    shortened = fitting()
    monkeypatch.setattr(Member, "is_repeated_by", lambda self, join: False)
    assert shortened == fitting()
    monkeypatch.setattr("rota.coordinator.group.join.bytes_at_most", lambda join: 1 << 40)
    assert shortened == fitting(), "the quick estimate of a joining member is too low"
    assert {True, False} == set(shortened)


def test_the_largest_subscription_counts_and_leaves_with_its_member() -> None:
    script = Script(config=LIMITED).does(join(1, new="a", protocols=of_bytes(300, "range", "sticky")))
    script.does(join(2, new="b", protocols=of_bytes(300, "range", "sticky"))).does(leave(3, "a"))
    script.does(join(4, new="c", protocols=of_bytes(300, "range")))
    assert set(script.group.members.by_id) == {"b", "c"}


def test_a_static_member_with_more_than_its_record_can_hold_beside_the_assignment_rebalances() -> None:
    script = completing("a", instances=True, config=LIMITED).does(sync(1, "a", 1, {"a": bytes(500)}))
    script.does(join(2, new="a2", instance="i-a", protocols=of_bytes(400))).is_in(GroupState.COMPLETING, 2)
    assert script.group.hard is not None
    assert [member.member_id for member in script.group.hard.members] == ["a2"]
