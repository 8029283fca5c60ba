"""DescribeAcls, key 29, versions 1-3.

v2 flexible · v3 user resources (KIP-373)
"""

from __future__ import annotations

from itertools import groupby

from rota.coordinator.api.node import Call, Node
from rota.coordinator.security.acl import Acl, AclFilter, InvalidAcl, PatternType, Permission, check_filter
from rota.coordinator.security.operations import Operation, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_acls import DeleteAclsFilter
from rota.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

NO_AUTHORIZER = "No Authorizer is configured."


def describe_acls(node: Node, call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the ACLs that match the filter, by resource pattern."""
    if node.authorizer is None:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    try:
        selection = read_filter(request)
    except InvalidAcl as error:
        return DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=str(error))
    found = [acl for acl in node.authorizer.acls if selection.matches(acl)]
    return DescribeAclsResponse(
        error_message="",  # as Kafka
        resources=tuple(
            DescribeAclsResource(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                acls=tuple(map(_description, acls)),
            )
            for pattern, acls in groupby(found, key=lambda acl: acl.pattern)
        ),
    )


def read_filter(request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return the filter of a request. Raises InvalidAcl."""
    try:
        selection = AclFilter(
            resource_type=ResourceType(request.resource_type_filter),
            name=request.resource_name_filter,
            pattern_type=PatternType(request.pattern_type_filter),
            principal=request.principal_filter,
            host=request.host_filter,
            operation=Operation(request.operation),
            permission=Permission(request.permission_type),
        )
    except ValueError as error:
        raise InvalidAcl(f"The filter has an unknown code: {error}") from error
    check_filter(selection)
    return selection


def _description(acl: Acl) -> AclDescription:
    entry = acl.entry
    return AclDescription(
        principal=entry.principal, host=entry.host, operation=entry.operation, permission_type=entry.permission
    )
