"""DeleteAcls, key 31, versions 1-3.

v2 flexible · v3 user resources (KIP-373)

Each filter has its own result: the ACLs that it deleted. An ACL that two filters match is in both results.
"""

from __future__ import annotations

from itertools import groupby

from rota.coordinator.api.describe_acls import NO_AUTHORIZER, read_filter
from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.timeout import refuse_failure
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security import acl_nodes
from rota.coordinator.security.acl import Acl, AclFilter, InvalidAcl, ResourcePattern
from rota.coordinator.security.authorizer import Authorizer
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def delete_acls(
    node: Node, call: Call, request: DeleteAclsRequest
) -> DeleteAclsResponse | DelayedReply[DeleteAclsResponse]:
    """Delete the ACLs that match a filter; delayed until they are out of the metadata store."""
    if node.authorizer is None:
        disabled = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=tuple(disabled for _ in request.filters))
    return eager_tasks.start(_delete_all(node, node.authorizer, request))


async def _delete_all(node: Node, authorizer: Authorizer, request: DeleteAclsRequest) -> DeleteAclsResponse:
    selections = [_read(requested) for requested in request.filters]
    filters = [selection for selection in selections if isinstance(selection, AclFilter)]
    doomed = [acl for acl in authorizer.acls if any(selection.matches(acl) for selection in filters)]
    outcomes: dict[ResourcePattern, Refusal | None] = {}
    for pattern, acls in groupby(doomed, key=lambda acl: acl.pattern):
        outcomes[pattern] = await _remove(node, pattern, list(acls))
    return DeleteAclsResponse(
        filter_results=tuple(
            DeleteAclsFilterResult(error_code=selection.code, error_message=selection.message)
            if isinstance(selection, Refusal)
            else DeleteAclsFilterResult(
                matching_acls=tuple(_deleted(acl, outcomes[acl.pattern]) for acl in doomed if selection.matches(acl))
            )
            for selection in selections
        )
    )


def _read(requested: DeleteAclsFilter) -> AclFilter | Refusal:
    try:
        return read_filter(requested)
    except InvalidAcl as error:
        return Refusal(ErrorCode.INVALID_REQUEST, str(error))


async def _remove(node: Node, pattern: ResourcePattern, acls: list[Acl]) -> Refusal | None:
    return await refuse_failure(acl_nodes.remove(node.topics, pattern, {acl.entry for acl in acls}))


def _deleted(acl: Acl, refusal: Refusal | None) -> DeleteAclsMatchingAcl:
    pattern, entry = acl.pattern, acl.entry
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
