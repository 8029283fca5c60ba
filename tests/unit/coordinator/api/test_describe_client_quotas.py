from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.describe_client_quotas import describe_client_quotas
from rota.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


def ask(*components: tuple[str, int, str | None]) -> DescribeClientQuotasResponse:
    request = DescribeClientQuotasRequest(
        components=tuple(ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components)
    )
    reply = World().serve(describe_client_quotas, request, 1)
    assert isinstance(reply, DescribeClientQuotasResponse)
    return reply


@pytest.mark.parametrize(
    "components", [(), (("user", 0, "alice"),), (("user", 1, None), ("client-id", 2, None)), (("ip", 2, None),)]
)
def test_there_are_no_quotas(components: tuple[tuple[str, int, str | None], ...]) -> None:
    assert ask(*components) == DescribeClientQuotasResponse(entries=())


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ((("user", 0, "a"), ("user", 0, "b")), 42),
        ((("", 0, "a"),), 42),
        ((("planet", 0, "a"),), 35),
        ((("user", 3, None),), 42),
        ((("user", 0, None),), 42),
        ((("user", 1, "a"),), 42),
    ],
)
def test_an_invalid_filter_is_refused(components: tuple[tuple[str, int, str | None], ...], code: int) -> None:
    response = ask(*components)
    assert (response.error_code, response.entries) == (code, None)
