"""Effects are values, and what may leave before the log is written is marked."""

from __future__ import annotations

from rota.coordinator.group.effects import Joined, Note, Reply, Synced, refuse
from rota.coordinator.group.events import MemberId, Token
from rota.protocol.errors import ErrorCode


def test_a_reply_waits_and_a_refusal_does_not() -> None:
    assert Reply(Token(1), ErrorCode.NONE).when_durable
    assert refuse(Token(1), ErrorCode.NONE) == Reply(Token(1), ErrorCode.NONE, when_durable=False)


def test_a_refusal_says_nothing_but_its_code() -> None:
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
