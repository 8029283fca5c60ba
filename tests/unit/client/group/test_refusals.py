"""Codes that end a membership say what to do."""

from __future__ import annotations

import pytest

from rota.client.config import ConsumerConfig
from rota.client.errors import AssignmentFailed, BrokerError, FencedInstance
from rota.client.group.refusals import REASON_CHARS_MAX, fenced, java_name, refused, truncated
from rota.protocol.errors import ErrorCode

E = ErrorCode
CONFIG = ConsumerConfig(bootstrap_servers="h:1", group_id="orders", group_instance_id="i-7")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (E.GROUP_MAX_SIZE_REACHED, "raise group.max.size"),
        (E.INVALID_SESSION_TIMEOUT, "session_timeout_ms is 45000"),
        (E.INVALID_GROUP_ID, "another group_id than 'orders'"),
        (E.GROUP_AUTHORIZATION_FAILED, "READ on the group"),
        (E.UNSUPPORTED_VERSION, "do without group_instance_id"),
    ],
)
def test_a_refusal_names_group_code_and_remedy(code: ErrorCode, remedy: str) -> None:
    error = refused("JoinGroup", code, CONFIG)
    assert isinstance(error, BrokerError)
    assert (error.code, error.group) == (code, "orders")
    assert remedy in str(error)
    assert code.name in str(error)


def test_an_error_code_without_a_remedy_has_its_plain_text() -> None:
    assert str(refused("SyncGroup", E.UNKNOWN_SERVER_ERROR, CONFIG)).startswith("SyncGroup was refused (group orders)")
    plain = ConsumerConfig(bootstrap_servers="h:1", group_id="orders")
    assert "group_instance_id" not in str(refused("JoinGroup", E.UNSUPPORTED_VERSION, plain))


def test_some_codes_have_an_error_of_their_own() -> None:
    assert isinstance(refused("JoinGroup", E.FENCED_INSTANCE_ID, CONFIG), FencedInstance)
    assert isinstance(refused("JoinGroup", E.INCONSISTENT_GROUP_PROTOCOL, CONFIG), AssignmentFailed)
    assert "i-7" in str(fenced(CONFIG))


def test_reasons_are_javas_and_fit() -> None:
    assert java_name(E.UNKNOWN_MEMBER_ID) == "UnknownMemberIdException"
    assert truncated("x" * 300) == "x" * REASON_CHARS_MAX
