from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.renew_delegation_token import renew_delegation_token
from rota.coordinator.network.call import Call
from rota.coordinator.security.principal import ANONYMOUS, Principal
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

ALICE = Principal("User", "alice")
REFUSALS = [
    (ANONYMOUS, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    (ALICE, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
]


def call_of(principal: Principal) -> Call:
    return Call(3, "c", "/127.0.0.1", "127.0.0.1", 9092, principal=principal)


@pytest.mark.parametrize(("principal", "code"), REFUSALS)
def test_a_request_is_refused_as_by_a_kafka_without_a_secret_key(principal: Principal, code: ErrorCode) -> None:
    request = RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=1)
    response = renew_delegation_token(World().node, call_of(principal), request)
    assert (response.error_code, response.expiry_timestamp_ms) == (code, -1 if principal == ANONYMOUS else 0)
