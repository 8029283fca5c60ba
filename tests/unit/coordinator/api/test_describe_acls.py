"""DescribeAcls: the ACLs that a filter selects, by resource pattern."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.acl_world import ANY, GROUP, MATCH, PREFIXED, TOPIC, WRITE, AclWorld, creation

from rota.coordinator.api.describe_acls import describe_acls
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def send_request(world: AclWorld, **fields: Any) -> DescribeAclsResponse:
    everything: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    response = world.send_request(describe_acls, DescribeAclsRequest(**{**everything, **fields}))
    assert isinstance(response, DescribeAclsResponse)
    return response


def shown(response: DescribeAclsResponse) -> list[tuple[str, list[tuple[str, int]]]]:
    return [(each.resource_name, [(acl.principal, acl.operation) for acl in each.acls]) for each in response.resources]


@pytest.fixture
def world() -> AclWorld:
    world = AclWorld()
    world.create(
        creation(),
        creation(operation=WRITE),
        creation("ord", resource_pattern_type=PREFIXED, principal="User:bob"),
        creation("g", resource_type=GROUP),
    )
    return world


def test_all_acls(world: AclWorld) -> None:
    assert shown(send_request(world)) == [
        ("orders", [("User:alice", 3), ("User:alice", 4)]),
        ("ord", [("User:bob", 3)]),
        ("g", [("User:alice", 3)]),
    ]


def test_a_filter_selects(world: AclWorld) -> None:
    matching = send_request(world, resource_type_filter=TOPIC, resource_name_filter="orders", pattern_type_filter=MATCH)
    assert [name for name, _ in shown(matching)] == ["orders", "ord"]
    assert shown(send_request(world, operation=WRITE)) == [("orders", [("User:alice", 4)])]
    assert shown(send_request(world, principal_filter="User:carol")) == []


@pytest.mark.parametrize("code", [0, 99])
def test_an_unknown_code_is_refused(world: AclWorld, code: int) -> None:
    assert send_request(world, operation=code).error_code == ErrorCode.INVALID_REQUEST


def test_without_an_authorizer_security_is_disabled() -> None:
    response = send_request(AclWorld({}))
    assert (response.error_code, response.error_message) == (54, "No Authorizer is configured.")
