"""DeleteAcls: each filter says what it deleted."""

from __future__ import annotations

from typing import Any

from tests.unit.coordinator.api.acl_world import ANY, LITERAL, MATCH, PREFIXED, TOPIC, WRITE, AclWorld, creation

from rota.coordinator.api.delete_acls import delete_acls
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsFilterResult, DeleteAclsRequest


def selection(**fields: Any) -> DeleteAclsFilter:
    everything: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return DeleteAclsFilter(**{**everything, **fields})


def send_request(world: AclWorld, *filters: DeleteAclsFilter) -> tuple[DeleteAclsFilterResult, ...]:
    results: tuple[DeleteAclsFilterResult, ...] = world.send_request(
        delete_acls, DeleteAclsRequest(filters=filters)
    ).filter_results
    return results


def left(world: AclWorld) -> list[str]:
    assert world.node.authorizer is not None
    return [str(acl.pattern) for acl in world.node.authorizer.acls]


def test_each_filter_deletes_and_returns_its_matching_acls() -> None:
    world = AclWorld()
    world.create(creation(), creation(operation=WRITE), creation("ord", resource_pattern_type=PREFIXED), creation("b"))
    first, second, third = send_request(
        world,
        selection(resource_type_filter=TOPIC, resource_name_filter="orders", pattern_type_filter=LITERAL),
        selection(resource_name_filter="orders", pattern_type_filter=MATCH),
        selection(resource_name_filter="absent"),
    )
    assert [(acl.resource_name, acl.operation) for acl in first.matching_acls] == [("orders", 3), ("orders", 4)]
    assert [acl.resource_name for acl in second.matching_acls] == ["orders", "orders", "ord"]
    assert third == DeleteAclsFilterResult()
    assert left(world) == ["TOPIC:LITERAL:b"]


def test_an_unknown_code_is_refused_and_deletes_nothing() -> None:
    world = AclWorld()
    world.create(creation())
    refused, none = send_request(world, selection(operation=0), selection(operation=WRITE))
    assert (refused.error_code, none.matching_acls) == (ErrorCode.INVALID_REQUEST, ())
    assert left(world) == ["TOPIC:LITERAL:orders"]


def test_without_an_authorizer_security_is_disabled() -> None:
    (result,) = send_request(AclWorld({}), selection())
    assert (result.error_code, result.error_message) == (54, "No Authorizer is configured.")
