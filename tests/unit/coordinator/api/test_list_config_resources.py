from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.list_config_resources import list_config_resources
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

TOPICS = [(2, "a"), (2, "b")]


def send_request(version: int, *types: int) -> ListConfigResourcesResponse:
    world = World({"node.id": "3"})
    world.topic("b")
    world.topic("a")
    reply = world.serve(list_config_resources, ListConfigResourcesRequest(resource_types=types), version)
    assert isinstance(reply, ListConfigResourcesResponse)
    return reply


@pytest.mark.parametrize(
    ("version", "types", "resources"),
    [
        (1, (), [*TOPICS, (4, "3"), (8, "3")]),
        (1, (4,), [(4, "3")]),
        (1, (4, 2, 4), [*TOPICS, (4, "3")]),
        (1, (16, 32), []),
        (0, (), []),
    ],
)
def test_resources_that_have_configs(version: int, types: tuple[int, ...], resources: list[tuple[int, str]]) -> None:
    reply = send_request(version, *types)
    assert reply.error_code == 0
    assert [(resource.resource_type, resource.resource_name) for resource in reply.config_resources] == resources


def test_an_unknown_type() -> None:
    reply = send_request(1, 4, 99)
    assert (reply.error_code, reply.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())
