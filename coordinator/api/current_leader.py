"""The leader of a partition in answers of a broker that does not lead it: Fetch v16, Produce v10 (KIP-951)."""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.endpoints import address_of
from rota.coordinator.api.node import Call, Node
from rota.coordinator.replica.partition_lookup import Key
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint

HINTED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class LeaderHints:
    """The hints of one answer: the leaders that its partitions name, and their addresses."""

    __slots__ = ("_call", "_leaders", "_node")

    def __init__(self, node: Node, call: Call) -> None:
        self._node, self._call = node, call
        self._leaders: dict[int, None] = {}

    def leader_of(self, key: Key, error: ErrorCode | int) -> LeaderIdAndEpoch | None:
        """Return the leader of a partition that was refused; None when the error is another or no leader is known."""
        if error not in HINTED:
            return None
        topics, (name, index) = self._node.topics, key
        topic = topics.get(name) if isinstance(name, str) else topics.by_id(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        state = topic.partitions[index]
        if state.leader < 0:
            return None
        self._leaders[state.leader] = None
        return LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)

    @property
    def has_leaders(self) -> bool:
        """Whether any partition names its leader."""
        return bool(self._leaders)

    def endpoints(self) -> tuple[NodeEndpoint, ...]:
        """Return the addresses of the leaders that were named, as far as they are alive."""
        addresses = (address_of(self._node, self._call, leader) for leader in self._leaders)
        return tuple(
            NodeEndpoint(node_id=found.node_id, host=found.host, port=found.port, rack=found.rack)
            for found in addresses
            if found is not None
        )
