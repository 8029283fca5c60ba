"""An administrator removes members of the consumer protocol by LeaveGroup."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.talk import Talk
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.group.effects import Synced
from rota.coordinator.group.events import InstanceId, Leave, Leaver, MemberId, Sync
from rota.protocol.errors import ErrorCode


def leave(talk: Talk, *leavers: tuple[str, str | None]) -> list[ErrorCode]:
    named = tuple(Leaver(MemberId(member), None if inst is None else InstanceId(inst)) for member, inst in leavers)
    return [code for _, _, code in talk.send(Leave(talk.token(), named)).members]


def test_several_members_leave_with_one_new_epoch() -> None:
    talk = two_members()
    assert leave(talk, ("a", None), ("x", None), ("b", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert (talk.group.epoch, len(talk.group.members)) == (4, 0)


@pytest.mark.parametrize(
    ("member", "instance", "code"),
    [
        ("", "i", ErrorCode.NONE),
        ("s", "i", ErrorCode.NONE),
        ("x", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("s", "j", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_static_member_is_removed_by_its_instance(member: str, instance: str, code: ErrorCode) -> None:
    talk = Talk()
    talk.join("s", "t", instance="i")
    assert leave(talk, (member, instance)) == [code]
    assert bool(talk.group.members) == (code is not ErrorCode.NONE)


def test_resolved_expressions_go_with_members_that_are_removed() -> None:
    talk = Talk()
    talk.beat("a", 0, regex="t.*", owned={}, rebalance_ms=60_000)
    talk.advance(0)
    leave(talk, ("a", None))
    assert not talk.group.regexes


def test_a_sync_is_unknown() -> None:
    talk = two_members()
    event = Sync(
        token=talk.token(),
        member_id=MemberId("a"),
        instance_id=None,
        generation=3,
        protocol_type=None,
        protocol=None,
        assignments=(),
    )
    assert talk.send(event) == Synced(error=ErrorCode.UNKNOWN_MEMBER_ID)
