"""Static members: the instance comes back without its member id (KIP-345, R23)."""

from __future__ import annotations

from tests.unit.coordinator.group.script import (
    SUBSCRIPTION,
    arm,
    commit,
    completing,
    disarm,
    fires,
    generation,
    given,
    heartbeat,
    join,
    refuse,
    reply,
    stable,
    stored,
    sync,
)

from rota.coordinator.group import notes
from rota.coordinator.group.effects import Joined, JoinedMember, Reply, Synced
from rota.coordinator.group.events import InstanceId, MemberId, Proto
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

BOTH = (Proto("range", SUBSCRIPTION), Proto("roundrobin", SUBSCRIPTION))
OTHER_FIRST = BOTH[::-1]
FENCED = ErrorCode.FENCED_INSTANCE_ID


def join_response(
    token: int, member: str, number: int, leader: str, *members: str, skip: bool = False, protocol: str = "range"
) -> Reply:
    """As `script.told`, with instances: i-<the first letter of the member id>."""
    joined = tuple(JoinedMember(MemberId(name), InstanceId(f"i-{name[0]}"), SUBSCRIPTION) for name in members)
    return reply(
        token,
        Joined(
            member_id=MemberId(member),
            generation=number,
            protocol_type="consumer",
            protocol=protocol,
            leader=MemberId(leader),
            skip_assignment=skip,
            members=joined,
        ),
    )


def test_in_stable_a_follower_keeps_its_assignment_without_a_rebalance() -> None:
    script = stable("a", "b", instances=True).after(7)
    assert (
        script
        >> join(1, new="b2", instance="i-b")
        << disarm("session:b")
        << arm("session:b2", 10_007)
        << generation(1, 0, stored("a", b"A", instance="i-a"), stored("b2", b"B", instance="i-b"))
        << join_response(1, "b2", 1, "a")
        >> sync(2, "b2", 1, instance="i-b")
        << given(2, b"B")
    )
    script.is_in(GroupState.STABLE, 1).emitted(notes.STATIC_KEPT, member="b2")


def test_in_stable_a_leader_that_can_skip_the_assignment_gets_the_members() -> None:
    script = stable("a", "b", instances=True)
    assert (
        script
        >> join(1, new="a2", instance="i-a", skip=True)
        << disarm("session:a")
        << arm("session:a2", 10_000)
        << generation(1, 0, stored("a2", b"A", instance="i-a"), stored("b", b"B", instance="i-b"))
        << join_response(1, "a2", 1, "a2", "a2", "b", skip=True)
    )


def test_in_stable_a_leader_that_cannot_gets_its_old_id_as_leader() -> None:
    script = stable("a", "b", instances=True)
    assert (
        script
        >> join(1, new="a2", instance="i-a")
        << disarm("session:a")
        << arm("session:a2", 10_000)
        << generation(1, 0, stored("a2", b"A", instance="i-a"), stored("b", b"B", instance="i-b"))
        << join_response(1, "a2", 1, "a")
    )
    assert script >> join(2, "a2", instance="i-a") << arm("join", 60_000)  # it leads: its next join rebalances


def test_the_old_member_is_fenced_everywhere() -> None:
    script = stable("a", instances=True).does(join(1, new="a2", instance="i-a"))
    assert script >> heartbeat(2, "a", 1, instance="i-a") << refuse(2, FENCED)
    assert script >> sync(3, "a", 1, instance="i-a") << refuse(3, Synced(error=FENCED))
    assert script >> commit(4, "a", 1, instance="i-a") << refuse(4, FENCED)
    assert script >> join(5, "a", instance="i-a") << refuse(5, Joined(member_id=MemberId("a"), error=FENCED))
    assert script >> fires("session:a")


def test_other_metadata_for_the_same_assignor_does_not_rebalance() -> None:
    changed = (Proto("range", b"\0\0\0\0\0\1\0\1u\xff\xff\xff\xff"),)
    script = stable("a", "b", instances=True).does(join(1, new="b2", instance="i-b", protocols=changed))
    script.is_in(GroupState.STABLE, 1)
    assert script.group.subscribed_topics() == {"t", "u"}


def test_in_stable_another_choice_of_assignor_rebalances() -> None:
    script = completing("a", instances=True)
    script.does(join(1, "a", instance="i-a", protocols=BOTH)).does(sync(2, "a", 2, {"a": b"A"}))
    script.is_in(GroupState.STABLE, 2)
    script.does(join(3, new="a2", instance="i-a", protocols=OTHER_FIRST)).is_in(GroupState.COMPLETING, 3)
    script.emitted(
        notes.PREPARING,
        reason="Group's selectedProtocol will change because static member a2 with instance id i-a joined with "
        "change of protocol",
    )


def test_in_completing_a_takeover_rebalances_and_its_old_sync_is_fenced() -> None:
    script = completing("a", "b", "c", instances=True).does(sync(1, "b", 1)).does(sync(2, "c", 1))
    assert (
        script
        >> join(3, new="b2", instance="i-b")
        << disarm("session:b")
        << reply(1, Synced(error=FENCED))
        << arm("session:b2", 10_000)
        << refuse(2, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS))
        << disarm("sync")
        << arm("join", 60_000)
    )


def test_in_preparing_a_takeover_takes_the_place_of_the_join_that_waits() -> None:
    script = stable("a", "b", instances=True).does(join(1, "a", instance="i-a"))
    assert (
        script
        >> join(2, new="a2", instance="i-a")
        << disarm("session:a")
        << reply(1, Joined(member_id=MemberId("a"), error=FENCED))
        << arm("session:a2", 10_000)
    )
    assert (
        script
        >> join(3, "b", instance="i-b")
        << disarm("join")
        << generation(2, 0, stored("a2", instance="i-a"), stored("b", instance="i-b"))
        << join_response(2, "a2", 2, "a2", "a2", "b")
        << join_response(3, "b", 2, "a2")
        << arm("sync", 60_000)
    )


def test_a_replaced_static_member_completes_the_join_phase() -> None:
    script = stable("a", "b", instances=True).does(join(1, "a", instance="i-a"))
    assert (
        script
        >> join(2, new="b2", instance="i-b")
        << disarm("session:b")
        << arm("session:b2", 10_000)
        << disarm("join")
        << generation(2, 0, stored("a", instance="i-a"), stored("b2", instance="i-b"))
        << join_response(1, "a", 2, "a", "a", "b2")
        << join_response(2, "b2", 2, "a")
        << arm("sync", 60_000)
    )


def test_a_takeover_outlives_a_crash() -> None:
    script = stable("a", "b", instances=True).does(join(1, new="b2", instance="i-b")).reloaded()
    script.out.clear()
    assert script.is_in(GroupState.STABLE, 1) >> sync(2, "b2", 1, instance="i-b") << given(2, b"B")
    assert script >> heartbeat(3, "b", 1, instance="i-b") << refuse(3, FENCED)


def test_a_replacement_before_the_sync_is_waited_for_instead() -> None:
    script = completing("a", "b", instances=True).does(sync(1, "a", 1, {"a": b"A", "b": b"B"}))
    script.does(join(2, new="b2", instance="i-b"))
    assert script >> sync(3, "b2", 1) << disarm("sync") << given(3, b"B")
