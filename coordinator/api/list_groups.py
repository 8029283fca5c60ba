"""ListGroups, key 16, versions 0-5.

v3 flexible · v4 filter by state (KIP-518) · v5 filter by type (KIP-848)
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def list_groups(node: Node, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    """Return the groups of this broker, filtered by type and state, whatever the case of letters."""
    if node.groups.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(
        groups=tuple(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=summary.protocol_type,
                group_state=summary.state,
                group_type=summary.kind,
            )
            for group in node.groups.machines()
            for summary in (group.summary,)
            if not (states and summary.state.lower() not in states) and not (types and summary.kind not in types)
        )
    )
