"""ListGroups, key 16, versions 0-5.

v3 flexible · v4 filter by state (KIP-518) · v5 filter by type (KIP-848)
"""

from __future__ import annotations

from itertools import chain

from rota.coordinator.api.node import Call, Node
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.runtime.shard import Shard, ShardState
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def list_groups(
    node: Node, call: Call, request: ListGroupsRequest
) -> ListGroupsResponse | DelayedReply[ListGroupsResponse]:
    """Return the groups of this broker, filtered by type and state, whatever the case of letters.

    Delayed while records of a group are being written.
    """
    if node.groups.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}

    def listed(group: HostedGroup) -> ListedGroup | None:
        summary = group.summary
        if (states and summary.state.lower() not in states) or (types and summary.kind not in types):
            return None
        return ListedGroup(
            group_id=group.group_id,
            protocol_type=summary.protocol_type,
            group_state=summary.state,
            group_type=summary.kind,
        )

    def of(shard: Shard[HostedGroup]) -> ListGroupsResponse | DelayedReply[ListGroupsResponse]:
        body = ListGroupsResponse(groups=tuple(found for each in shard.machines.values() if (found := listed(each))))
        return shard.when_committed(body, lambda code: ListGroupsResponse(error_code=code))

    return gather([of(shard) for shard in node.groups.shards if shard.state is ShardState.READY], _combined)


def _combined(parts: list[ListGroupsResponse]) -> ListGroupsResponse:
    """Return the groups of all shards; an error if those of one are not known."""
    error = next((part.error_code for part in parts if part.error_code), 0)
    return ListGroupsResponse(error_code=error, groups=() if error else tuple(chain(*(part.groups for part in parts))))
