from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.create_delegation_token import create_delegation_token
from rota.coordinator.network.call import Call
from rota.coordinator.security.principal import ANONYMOUS, Principal
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_delegation_token import CreatableRenewer, CreateDelegationTokenRequest

ALICE = Principal("User", "alice")
REFUSALS = [
    (ANONYMOUS, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    (ALICE, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
]


def call_of(principal: Principal) -> Call:
    return Call(3, "c", "/127.0.0.1", "127.0.0.1", 9092, principal=principal)


@pytest.mark.parametrize(("principal", "code"), REFUSALS)
def test_a_request_is_refused_as_by_a_kafka_without_a_secret_key(principal: Principal, code: ErrorCode) -> None:
    request = CreateDelegationTokenRequest()
    assert create_delegation_token(World().node, call_of(principal), request).error_code == code


def test_the_owner_of_a_refused_token_is_who_was_asked_for_or_who_asks() -> None:
    for request, owner in (
        (CreateDelegationTokenRequest(), ALICE),
        (CreateDelegationTokenRequest(owner_principal_type="Group", owner_principal_name=""), ALICE),
        (
            CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob"),
            Principal("User", "bob"),
        ),
        (CreateDelegationTokenRequest(owner_principal_type="", owner_principal_name="bob"), Principal("", "bob")),
    ):
        response = create_delegation_token(World().node, call_of(ALICE), request)
        assert Principal(response.principal_type, response.principal_name) == owner
        assert response.token_requester_principal_name == "alice"


def test_the_times_of_a_refusal_are_those_of_a_kafka_4_3_1() -> None:
    group = (CreatableRenewer(principal_type="Group", principal_name="g"),)
    for principal, renewers, code, time_ms in (
        (ALICE, (), ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0),
        (ALICE, group, ErrorCode.INVALID_PRINCIPAL_TYPE, -1),
        (ANONYMOUS, group, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1),
    ):
        request = CreateDelegationTokenRequest(renewers=renewers)
        response = create_delegation_token(World().node, call_of(principal), request)
        times = {response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms}
        assert (response.error_code, times) == (code, {time_ms})
