"""ListPartitionReassignments, key 46, version 0.

v0 flexible (KIP-455)

With one broker a reassignment is complete when it is answered: none is ever in progress.
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def list_partition_reassignments(
    node: Node, call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return an empty response."""
    return ListPartitionReassignmentsResponse()
