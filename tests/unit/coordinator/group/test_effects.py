"""Effects are values, keep their order, and mark what may leave before the log is written."""

from __future__ import annotations

from rota.coordinator.group.effects import Append, Arm, Disarm, GroupRecord, Joined, Note, Reply, Step, Synced, refuse
from rota.coordinator.group.events import MemberId, Token
from rota.protocol.errors import ErrorCode


def test_a_reply_waits_and_a_refusal_does_not() -> None:
    assert Reply(Token(1), ErrorCode.NONE).when_durable
    assert refuse(Token(1), ErrorCode.NONE) == Reply(Token(1), ErrorCode.NONE, when_durable=False)


def test_a_refused_join_has_default_fields_besides_its_error() -> None:
    assert Joined(member_id=MemberId("a"), error=ErrorCode.UNKNOWN_MEMBER_ID) == Joined(
        member_id=MemberId("a"),
        error=ErrorCode.UNKNOWN_MEMBER_ID,
        generation=-1,
        protocol_type=None,
        protocol=None,
        leader=MemberId(""),
        skip_assignment=False,
        members=(),
    )
    assert Synced(error=ErrorCode.UNKNOWN_MEMBER_ID).assignment == b""


def test_notes_do_not_share_their_fields() -> None:
    assert Note("x").fields is not Note("x").fields


def test_effects_are_returned_in_the_order_of_the_calls() -> None:
    step = Step(5, 5)
    step.append(GroupRecord("g", None))
    step.reply(Token(1), ErrorCode.NONE)
    step.refuse(Token(2), ErrorCode.NON_EMPTY_GROUP)
    step.arm("join", 6)
    step.disarm("sync")
    step.note("said", {"group": "g"})
    assert step.effects == [
        Append(GroupRecord("g", None)),
        Reply(Token(1), ErrorCode.NONE, when_durable=True),
        Reply(Token(2), ErrorCode.NON_EMPTY_GROUP, when_durable=False),
        Arm("join", 6),
        Disarm("sync"),
        Note("said", {"group": "g"}),
    ]
