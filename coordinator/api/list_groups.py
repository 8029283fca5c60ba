"""ListGroups, key 16, versions 0-5.

v3 flexible · v4 filter by state (KIP-518) · v5 filter by type (KIP-848)

Law
    LIG1 A list of many groups is collected, filtered and encoded in slices of GROUPS_PER_SLICE groups, between which
        the loop does its other work. A group that is created or deleted meanwhile may be in the list or not; a shard
        that loads meanwhile makes the answer COORDINATOR_LOAD_IN_PROGRESS, as before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.network.call import Codecs
from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from rota.protocol.varint import uvarint

GROUPS_PER_SLICE: Final = 500  # a millisecond or two


class EncodedGroups(tuple[ListedGroup, ...]):
    """The groups of a long list, with their encoded entries."""

    entries: bytes


def list_groups(
    node: Node, call: Call, request: ListGroupsRequest, visible: Callable[[str], bool] = lambda group_id: True
) -> ListGroupsResponse | DelayedReply[ListGroupsResponse]:
    """Return the groups of this broker, filtered by type, state (whatever the case of letters) and `visible`.

    Delayed while records of a group are being written.
    """
    if node.groups.is_loading:
        return _loading()
    listing = _Listing(request, call.version, visible)
    work = listing.slices(node.groups.machine_portions(GROUPS_PER_SLICE))
    if next(work, True):
        return _when_committed(node, listing)
    reply: DelayedReply[ListGroupsResponse] = DelayedReply(mutes=True)
    reply.on_abandon(work.close)
    before = node.groups.loads()

    def done() -> None:
        committed = _when_committed(node, listing) if before == node.groups.loads() else _loading()
        if isinstance(committed, DelayedReply):
            committed.then(reply.answer)
        else:
            reply.answer(committed)

    node.groups.in_slices(work, done)
    return reply


def _when_committed(node: Node, listing: _Listing) -> ListGroupsResponse | DelayedReply[ListGroupsResponse]:
    """Return the list when what was read is committed; an error if the groups of a shard are not known."""
    empty = ListGroupsResponse()
    parts = [
        shard.when_committed(empty, lambda code: ListGroupsResponse(error_code=code))
        for shard in node.groups.shards
        if shard.state is ShardState.READY
    ]
    return gather(
        parts, lambda shards: next((shard for shard in shards if shard.error_code), None) or listing.response()
    )


def codecs(version: int) -> Codecs:
    """Return the codecs of a version; the entries of a long list are encoded already."""
    encode = codec(ListGroupsResponse, version).encode

    def encode_joined(response: ListGroupsResponse) -> bytes:
        groups = response.groups
        if not isinstance(groups, EncodedGroups):
            return encode(response)
        empty, bare = encode(replace(response, groups=())), len(_count(0, version))
        tags = len(empty) - _tags(version)
        return empty[: tags - bare] + _count(len(groups), version) + groups.entries + empty[tags:]

    return codec(ListGroupsRequest, version).decode, encode_joined


class _Listing:
    """One list while it is collected."""

    def __init__(self, request: ListGroupsRequest, version: int, visible: Callable[[str], bool]) -> None:
        self._states = {state.lower() for state in request.states_filter}
        self._types = {kind.lower() for kind in request.types_filter}
        self._version, self._visible = version, visible
        self._groups: list[ListedGroup] = []
        self._entries: list[bytes] = []

    def slices(self, portions: Iterator[list[HostedGroup]]) -> Generator[None, None, None]:
        """Collect the groups; `yield` where the loop may turn. There is none in a list of one portion."""
        collected = self._listed(next(portions))
        for portion in portions:
            self._encode(collected)
            yield
            collected = self._listed(portion)
        if self._entries:
            self._encode(collected)
        else:
            self._groups = collected

    def response(self) -> ListGroupsResponse:
        """Return the list."""
        if not self._entries:
            return ListGroupsResponse(groups=tuple(self._groups))
        groups = EncodedGroups(self._groups)
        groups.entries = b"".join(self._entries)
        return ListGroupsResponse(groups=groups)

    def _listed(self, portion: list[HostedGroup]) -> list[ListedGroup]:
        return [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=summary.protocol_type,
                group_state=summary.state,
                group_type=summary.kind,
            )
            for group in portion
            for summary in (group.summary,)
            if not (self._states and summary.state.lower() not in self._states)
            and not (self._types and summary.kind not in self._types)
            and self._visible(group.group_id)
        ]

    def _encode(self, collected: list[ListedGroup]) -> None:
        encode, version = codec(ListGroupsResponse, self._version).encode, self._version
        begin = len(encode(ListGroupsResponse())) - _tags(version) - len(_count(0, version))
        encoded = encode(ListGroupsResponse(groups=tuple(collected)))
        self._entries.append(encoded[begin + len(_count(len(collected), version)) : len(encoded) - _tags(version)])
        self._groups += collected


def _loading() -> ListGroupsResponse:
    return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _count(groups: int, version: int) -> bytes:
    """The length of the array of groups, as it precedes them."""
    return uvarint(groups + 1) if version >= ListGroupsResponse.FLEXIBLE else struct.pack(">i", groups)


def _tags(version: int) -> int:
    """The number of bytes after the groups: an empty set of tagged fields."""
    return 1 if version >= ListGroupsResponse.FLEXIBLE else 0
