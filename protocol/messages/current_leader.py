"""The current leader of a partition, in tagged fields of Fetch (v16) and Produce (v10) responses (KIP-951)."""

from __future__ import annotations

from rota.protocol.wire import Int32, String, wire, wired


@wired
class LeaderIdAndEpoch:
    """The leader that the broker knows. Written with NOT_LEADER_OR_FOLLOWER and, in Fetch, FENCED_LEADER_EPOCH."""

    leader_id: int = wire(Int32, default=-1)
    leader_epoch: int = wire(Int32, default=-1)


@wired
class NodeEndpoint:
    """The address of a leader that a response names."""

    node_id: int = wire(Int32)
    host: str = wire(String)
    port: int = wire(Int32)
    rack: str | None = wire(String, nullable_since=0, default=None)
