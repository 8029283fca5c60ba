"""Effects keep their order."""

from __future__ import annotations

from rota.coordinator.group.effects import Append, Arm, Disarm, GroupRecord, Note, Reply
from rota.coordinator.group.events import Token
from rota.coordinator.group.turn import Turn
from rota.protocol.errors import ErrorCode


def test_what_was_decided_comes_out_in_that_order() -> None:
    turn = Turn(5, 5)
    turn.append(GroupRecord("g", None))
    turn.reply(Token(1), ErrorCode.NONE)
    turn.refuse(Token(2), ErrorCode.NON_EMPTY_GROUP)
    turn.arm("join", 6)
    turn.disarm("sync")
    turn.note("said", {"group": "g"})
    assert turn.effects == [
        Append(GroupRecord("g", None)),
        Reply(Token(1), ErrorCode.NONE, when_durable=True),
        Reply(Token(2), ErrorCode.NON_EMPTY_GROUP, when_durable=False),
        Arm("join", 6),
        Disarm("sync"),
        Note("said", {"group": "g"}),
    ]
