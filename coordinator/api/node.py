"""What an API file may use. The shell (`broker.py`) fills it; an API never reaches past it.

The shape of an API file:

    def heartbeat(node: Node, call: Call, request: HeartbeatRequest) -> HeartbeatResponse | Parked[HeartbeatResponse]

A plain response leaves at once, a Parked one when it is answered, None leaves nothing (Produce with acks=0), and
HangUp, raised, ends the connection without one.
`coordinator/api/routes.py` maps each API key to its function; ApiVersions answers from that table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rota.coordinator.replica.durability import Durability

if TYPE_CHECKING:
    from rota.coordinator.config.broker import BrokerConfig
    from rota.coordinator.group_coordinator import GroupCoordinator
    from rota.coordinator.metadata.producer_ids import ProducerIds
    from rota.coordinator.metadata.topics import Topics
    from rota.coordinator.replica.fetch_sessions import FetchSessions
    from rota.coordinator.replica.partitions import Partitions
    from rota.coordinator.scheduling.timers import Timers


class HangUp(Exception):
    """End the connection: something failed in a request whose client awaits no reply (Produce with acks=0)."""


@dataclass(slots=True)
class Call:
    """One request on its way: who asks, in which version, through which door."""

    version: int
    client_id: str
    client_host: str  # the peer's address, as Kafka writes it into group metadata: "/127.0.0.1"
    # the address to tell this client: what its listener advertises or, where none is configured, the one that it used
    reached_host: str
    reached_port: int
    connection_id: int = 0


@dataclass(slots=True)
class Node:
    """The broker as its APIs see it."""

    config: BrokerConfig
    topics: Topics  # names, ids, partition counts, configs: the cluster's metadata
    partitions: Partitions  # the logs that live here
    groups: GroupCoordinator
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    timers: Timers  # call me at that time, unless I cancel
    now_ms: Callable[[], int]  # elapsed time, for deadlines; only differences mean anything
    wall_ms: Callable[[], int]  # ms since the epoch, for timestamps
    durability: Durability = field(default_factory=Durability)  # group flush, off the loop; the shards' as well
