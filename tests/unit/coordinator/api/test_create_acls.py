"""CreateAcls: what is created, what is refused, and each has its own result."""

from __future__ import annotations

from tests.unit.coordinator.api.acl_world import CLUSTER, PREFIXED, READ, WRITE, AclWorld, creation

from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import StoreFailed
from rota.protocol.errors import ErrorCode


def texts(world: AclWorld) -> list[str]:
    assert world.node.authorizer is not None
    return [f"{acl.pattern} {acl.entry}" for acl in world.node.authorizer.acls]


def test_acls_are_in_force_when_the_response_leaves() -> None:
    world = AclWorld()
    created = (creation(), creation(operation=WRITE), creation("ord", resource_pattern_type=PREFIXED), creation())
    assert world.create(*created) == [(0, "")] * 4
    assert world.create(creation()) == [(0, "")]  # it exists already
    assert texts(world) == [
        "TOPIC:LITERAL:orders ALLOW READ * User:alice",
        "TOPIC:LITERAL:orders ALLOW WRITE * User:alice",
        "TOPIC:PREFIXED:ord ALLOW READ * User:alice",
    ]


def test_a_refused_acl_does_not_affect_the_others() -> None:
    world = AclWorld()
    results = world.create(
        creation("x", resource_type=CLUSTER),
        creation(""),
        creation(principal="alice"),
        creation(operation=99),
        creation(),
    )
    assert [code for code, _ in results] == [ErrorCode.INVALID_REQUEST] * 4 + [0]
    assert results[0][1] == "The only valid name for the CLUSTER resource is kafka-cluster"
    assert texts(world) == ["TOPIC:LITERAL:orders ALLOW READ * User:alice"]


def test_a_name_that_the_store_does_not_take_is_refused() -> None:
    ((code, _),) = AclWorld().create(creation("/" * 4_000))
    assert code == ErrorCode.INVALID_REQUEST


def test_without_an_authorizer_security_is_disabled() -> None:
    world = AclWorld({})
    disabled = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    assert world.create(creation(), creation(operation=READ)) == [disabled] * 2


def test_a_store_that_fails_is_an_error_of_the_acl() -> None:
    class Failing(EmbeddedStore):
        async def create(
            self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
        ) -> str:
            if "/acls/" in path:
                raise StoreFailed("the disk is full")
            return await super().create(path, data, ephemeral=ephemeral, sequential=sequential)

    world = AclWorld(store=Failing())
    assert world.create(creation()) == [(ErrorCode.UNKNOWN_SERVER_ERROR, "the disk is full")]
    assert texts(world) == []
