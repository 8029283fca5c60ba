"""DeleteGroups, key 42, versions 0-2.

v2 flexible. Only an Empty group can be deleted; its offsets are deleted with it.
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.events import DeleteGroup
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def delete_groups(
    node: Node, call: Call, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | DelayedReply[DeleteGroupsResponse]:
    """Return one error code for each group; delayed until all tombstones are durable."""
    whole: DelayedReply[DeleteGroupsResponse] = DelayedReply()
    names = tuple(dict.fromkeys(request.groups_names))
    codes: dict[str, ErrorCode] = {}
    if not names:
        return DeleteGroupsResponse()

    def deleted(name: str, code: ErrorCode) -> None:
        codes[name] = code
        if len(codes) == len(names):
            whole.answer(_response(names, codes))

    for name in names:
        _delete(node, name).then(lambda code, name=name: deleted(name, code))  # type: ignore[misc]
    return whole


def _delete(node: Node, group_id: str) -> DelayedReply[ErrorCode]:
    shard = node.groups.ready(group_id)
    refused: DelayedReply[ErrorCode] = DelayedReply()
    if isinstance(shard, ErrorCode):
        refused.answer(shard)
        return refused
    group = shard.machines.get(group_id)
    if group is None:
        refused.answer(ErrorCode.GROUP_ID_NOT_FOUND)
        return refused
    return shard.submit(group, DeleteGroup(shard.token()), lambda code: code)


def _response(names: tuple[str, ...], codes: dict[str, ErrorCode]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=tuple(DeletableGroupResult(group_id=n, error_code=codes[n]) for n in names))
