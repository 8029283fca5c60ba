"""An answer goes to the branch that asked; one that nobody waits for changes nothing."""

from __future__ import annotations

from tests.unit.client.group.script import (
    CONFIG,
    RETURNING,
    Script,
    beaten,
    breaks,
    joining,
    left,
    rings,
    stable,
    sync_refused,
    synced,
    syncing,
)

from rota.client.group.answers import answered, unanswered
from rota.client.group.states import MemberState
from rota.protocol.errors import ErrorCode

S = MemberState
E = ErrorCode


def test_each_answer_finds_its_branch() -> None:
    assert joining().m.exchange is not None
    assert syncing().does(synced("t-0")).m.state is S.ASSIGNING
    assert stable().does(rings("heartbeat"), beaten(E.ILLEGAL_GENERATION)).m.state is S.DOWN


def test_each_failure_finds_its_branch() -> None:
    assert stable().does(rings("heartbeat"), breaks("beat")).m.state is S.REDISCOVERING
    assert syncing().does(breaks("sync")).m.state is S.DISCOVERING


def test_a_second_answer_to_a_sync_changes_nothing() -> None:
    script = stable()
    assert script >> sync_refused(E.UNKNOWN_MEMBER_ID)
    assert script >> breaks("sync")
    script.is_in(S.STABLE, 1)


def test_an_answer_to_a_leave_for_want_of_polls_changes_nothing() -> None:
    script = stable().does(RETURNING, rings("poll"))
    assert script >> left(E.UNKNOWN_MEMBER_ID)
    assert script >> breaks("leave")
    script.is_in(S.DOWN, -1)


def test_an_unknown_ticket_is_nobodys() -> None:
    script = Script(session_timeout_ms=CONFIG["session_timeout_ms"])
    answered(script.m, 99, None)
    unanswered(script.m, 99, ConnectionError())
    script.is_in(S.DOWN, -1)
