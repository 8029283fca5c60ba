"""Requests that only wait: which are decided without an event. That the decision is that of the event holds in every
conversation of the groups' tests (`group_world.step`)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.property.group_world import step, whole, without_event
from tests.unit.coordinator.group.script import Script, completing, given, join, preparing, stable, sync

from rota.coordinator.group.effects import Reply, Synced
from rota.coordinator.group.events import InstanceId, Join, MemberId, Proto, Sync
from rota.coordinator.group.state import GroupConfig
from rota.protocol.errors import ErrorCode

NOW_MS = 3


def rejoin(script: Script, name: str = "b", **changed: object) -> Join:
    """Return the JoinGroup with which a member repeats what the group knows of it."""
    member = script.group.members.by_id[MemberId(name)]
    repeated = join(9, name)
    known = replace(
        repeated,
        client_id=member.client_id,
        client_host=member.client_host,
        protocols=member.protocols,
        instance_id=member.instance_id,
    )
    return replace(known, **changed)  # type: ignore[arg-type]


def test_g4a_a_member_that_rejoins_as_it_was_waits_without_an_event() -> None:
    script = preparing("a", "b", "c")
    assert without_event(script.group, rejoin(script, session_ms=9_000, rebalance_ms=8_000), NOW_MS) == []
    member = script.group.members.by_id[MemberId("b")]
    assert (member.join, member.joined_ms, member.session_ms, member.rebalance_ms) == (9, NOW_MS, 9_000, 8_000)
    assert script.group.members.awaiting_join == 2  # and the member that began the rebalance


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "other"},
        {"client_host": "/other"},
        {"instance_id": InstanceId("i")},
        {"protocol_type": "other"},
        {"protocols": (Proto("range", b"other"),)},
        {"protocols": (Proto("other", b""),)},
        {"protocols": ()},
        {"session_ms": 1},
        {"session_ms": 10_000_000},
        {"member_id": MemberId("nobody")},
    ],
)
def test_a_join_that_says_anything_new_needs_an_event(changed: dict[str, object]) -> None:
    script = preparing("a", "b", "c")
    before = whole(script.group)
    assert without_event(script.group, rejoin(script, **changed), NOW_MS) is None
    assert whole(script.group) == before


def test_the_last_to_join_and_one_that_joins_twice_need_an_event() -> None:
    script = preparing("a", "b", "c")
    assert without_event(script.group, rejoin(script), NOW_MS) == []
    assert without_event(script.group, rejoin(script), NOW_MS) is None
    assert without_event(script.group, rejoin(script, "c"), NOW_MS) == []
    assert without_event(script.group, rejoin(script, "a"), NOW_MS) is None


@pytest.mark.parametrize("config", [GroupConfig(group_size_max=0), GroupConfig(record_bytes_max=10)])
def test_a_join_beyond_a_limit_needs_an_event(config: GroupConfig) -> None:
    script = preparing("a", "b", "c")
    script.group.config = config
    event = rejoin(script)
    assert without_event(script.group, event, NOW_MS) is None
    assert isinstance(step(script.group, event, NOW_MS)[-1], Reply)


def test_g4a_a_follower_waits_for_the_assignment_without_an_event() -> None:
    script = completing("a", "b")
    assert without_event(script.group, sync(9, "b", 1), NOW_MS) == []
    assert script.group.members.by_id[MemberId("b")].sync == 9


@pytest.mark.parametrize(
    "changed",
    [
        {"member_id": MemberId("a")},  # the leader
        {"member_id": MemberId("nobody")},
        {"generation": 0},
        {"instance_id": InstanceId("i")},
        {"protocol_type": "other"},
        {"protocol": "other"},
    ],
)
def test_a_sync_that_is_refused_or_that_leads_needs_an_event(changed: dict[str, object]) -> None:
    script = completing("a", "b", "c")
    before = whole(script.group)
    event: Sync = replace(sync(9, "b", 1), **changed)  # type: ignore[arg-type]
    assert without_event(script.group, event, NOW_MS) is None
    assert whole(script.group) == before


def test_a_follower_that_syncs_twice_needs_an_event() -> None:
    script = completing("a", "b", "c")
    assert without_event(script.group, sync(8, "b", 1), NOW_MS) == []
    assert without_event(script.group, sync(9, "b", 1), NOW_MS) is None


def test_g4a_a_part_is_read_without_an_event() -> None:
    script = stable("a", "b")
    (reply,) = without_event(script.group, sync(9, "b", 1), NOW_MS) or ()
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, Synced)
    assert reply.body.error is ErrorCode.NONE
    assert script >> sync(9, "b", 1) << given(9, reply.body.assignment)


def test_the_last_of_those_who_did_not_sync_needs_an_event() -> None:
    """It disarms the timer of the others."""
    script = completing("a", "b", "c").does(sync(1, "a", 1, {"a": b"0", "b": b"1", "c": b"2"}))
    assert without_event(script.group, sync(2, "b", 1), NOW_MS) is not None
    assert without_event(script.group, sync(3, "c", 1), NOW_MS) is None
