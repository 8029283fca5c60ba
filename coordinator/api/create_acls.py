"""CreateAcls, key 30, versions 1-3.

v2 flexible · v3 user resources (KIP-373)

Each ACL has its own result: a refused one does not affect the others. One that exists already is no error.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.coordinator.api.describe_acls import NO_AUTHORIZER
from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.timeout import refuse_failure
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security import acl_nodes
from rota.coordinator.security.acl import Acl, Entry, InvalidAcl, PatternType, Permission, ResourcePattern, check_acl
from rota.coordinator.security.operations import Operation, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse


def create_acls(
    node: Node, call: Call, request: CreateAclsRequest
) -> CreateAclsResponse | DelayedReply[CreateAclsResponse]:
    """Create the ACLs; delayed until they are in the metadata store."""
    if node.authorizer is None:
        disabled = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return CreateAclsResponse(results=tuple(disabled for _ in request.creations))
    return eager_tasks.start(_create_all(node, request))


async def _create_all(node: Node, request: CreateAclsRequest) -> CreateAclsResponse:
    requested = [_read(creation) for creation in request.creations]
    by_pattern: dict[ResourcePattern, set[Entry]] = {}
    for acl in requested:
        if isinstance(acl, Acl):
            by_pattern.setdefault(acl.pattern, set()).add(acl.entry)
    outcomes = {pattern: await _add(node, pattern, entries) for pattern, entries in by_pattern.items()}
    return CreateAclsResponse(results=tuple(_result(acl, outcomes) for acl in requested))


def _read(creation: AclCreation) -> Acl | Refusal:
    try:
        acl = Acl(
            ResourcePattern(
                ResourceType(creation.resource_type),
                PatternType(creation.resource_pattern_type),
                creation.resource_name,
            ),
            Entry(
                Permission(creation.permission_type), Operation(creation.operation), creation.principal, creation.host
            ),
        )
        check_acl(acl)
    except InvalidAcl as error:
        return Refusal(ErrorCode.INVALID_REQUEST, str(error))
    except ValueError as error:
        return Refusal(ErrorCode.INVALID_REQUEST, f"The ACL has an unknown code: {error}")
    return acl


async def _add(node: Node, pattern: ResourcePattern, entries: set[Entry]) -> Refusal | None:
    return await refuse_failure(acl_nodes.add(node.topics, pattern, entries))


def _result(acl: Acl | Refusal, outcomes: Mapping[ResourcePattern, Refusal | None]) -> AclCreationResult:
    refusal = acl if isinstance(acl, Refusal) else outcomes[acl.pattern]
    if refusal is None:
        return AclCreationResult(error_message="")  # as Kafka
    return AclCreationResult(error_code=refusal.code, error_message=refusal.message)
