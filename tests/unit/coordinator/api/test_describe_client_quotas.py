"""DescribeClientQuotas as Kafka 4.3.1 answers it."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World
from tests.unit.coordinator.api.test_alter_client_quotas import RATE, alter, entry

from rota.coordinator.api.describe_client_quotas import describe_client_quotas
from rota.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

Component = tuple[str, int, str | None]
U, DEFAULT_USER, C = {"user": "u"}, {"user": None}, {"client-id": "c"}
UC, U_ANY = {"client-id": "c", "user": "u"}, {"client-id": None, "user": "u"}
ADDRESS = {"ip": "127.0.0.1"}


def send_request(world: World, *components: Component, strict: bool = False) -> DescribeClientQuotasResponse:
    request = DescribeClientQuotasRequest(
        components=tuple(ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components),
        strict=strict,
    )
    reply = world.serve(describe_client_quotas, request, 1)
    assert isinstance(reply, DescribeClientQuotasResponse)
    return reply


def found(response: DescribeClientQuotasResponse) -> list[dict[str, str | None]]:
    assert (response.error_code, response.error_message) == (0, "")
    return [{each.entity_type: each.entity_name for each in entry.entity} for entry in response.entries or ()]


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ((), False, [DEFAULT_USER, U, C, U_ANY, UC, ADDRESS]),
        ((), True, []),
        ((("user", 2, None),), False, [DEFAULT_USER, U, U_ANY, UC]),
        ((("user", 2, None),), True, [DEFAULT_USER, U]),
        ((("user", 1, None),), False, [DEFAULT_USER]),
        ((("user", 0, "u"),), False, [U, U_ANY, UC]),
        ((("user", 0, "u"),), True, [U]),
        ((("user", 0, "u"), ("client-id", 2, None)), False, [U_ANY, UC]),
        ((("user", 0, "u"), ("client-id", 1, None)), True, [U_ANY]),
        ((("client-id", 0, "c"),), False, [C, UC]),
        ((("ip", 2, None),), False, [ADDRESS]),
        ((("user", 0, ""),), False, []),
    ],
)
def test_a_filter(components: tuple[Component, ...], strict: bool, expected: list[dict[str, str | None]]) -> None:
    world = World()
    for names in (DEFAULT_USER, U, C, U_ANY, UC):
        alter(world, entry(names, (RATE, 5)))  # type: ignore[arg-type]
    alter(world, entry(ADDRESS, ("connection_creation_rate", 5)))
    assert found(send_request(world, *components, strict=strict)) == expected


def test_the_quotas_of_an_entity_in_kafkas_order() -> None:
    """Law CQ16."""
    world = World()
    alter(world, entry(U, (RATE, 5), ("request_percentage", 1.5), ("consumer_byte_rate", 7)))
    (entity,) = send_request(world).entries or ()
    expected = [("consumer_byte_rate", 7.0), ("request_percentage", 1.5), (RATE, 5.0)]
    assert [(value.key, value.value) for value in entity.values] == expected
    alter(world, entry(U, ("controller_mutation_rate", 2)))
    (entity,) = send_request(world).entries or ()
    expected = [(RATE, 5.0), expected[0], ("controller_mutation_rate", 2.0), expected[1]]
    assert [(value.key, value.value) for value in entity.values] == expected


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ((("user", 0, "a"), ("user", 0, "b")), 42, "Entity type user cannot appear more than once in the filter."),
        ((("", 0, "a"),), 42, "Invalid empty entity type."),
        ((("planet", 0, "a"),), 35, "Unsupported entity type planet"),
        ((("user", 3, None),), 42, "Unknown match type 3"),
        ((("user", 0, None),), 42, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ((("user", 1, "a"),), 42, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ((("user", 2, "a"),), 42, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        (
            (("ip", 2, None), ("user", 2, None)),
            42,
            (
                "Invalid entity filter component combination. IP filter component should not be used with user or"
                " clientId filter component."
            ),
        ),
    ],
)
def test_an_invalid_filter_is_refused(components: tuple[Component, ...], code: int, message: str) -> None:
    response = send_request(World(), *components)
    assert (response.error_code, response.error_message, response.entries) == (code, message, None)
