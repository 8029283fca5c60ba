from __future__ import annotations

import pytest

from rota.coordinator.consumer_group.events import ConsumerHeartbeat, refusal
from rota.coordinator.runtime.contract import Token
from rota.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("rebalance_ms", "names", "regex", "owned", "is_full"),
    [
        (1, frozenset("t"), None, (), True),
        (1, None, "t.*", (), True),
        (None, frozenset("t"), None, (), False),
        (1, None, None, (), False),
        (1, frozenset("t"), None, None, False),
    ],
)
def test_a_full_heartbeat_says_everything(
    rebalance_ms: int | None, names: frozenset[str] | None, regex: str | None, owned: tuple[()] | None, is_full: bool
) -> None:
    event = ConsumerHeartbeat(
        token=Token(1),
        member_id="m",
        member_epoch=1,
        client_id="",
        client_host="",
        rebalance_ms=rebalance_ms,
        topic_names=names,
        regex=regex,
        owned=owned,
    )
    assert event.is_full == is_full
    assert event.can_describe("any topic")


def test_a_refusal_has_a_code_and_a_text() -> None:
    reply = refusal(ErrorCode.UNKNOWN_MEMBER_ID, "why")
    assert (reply.error, reply.message, reply.assignment) == (ErrorCode.UNKNOWN_MEMBER_ID, "why", None)
