"""The parts of the broker that an API file may use. `broker.py` creates it; an API uses nothing else of the broker.

The shape of an API file:

    def heartbeat(node: Node, call: Call, request: HeartbeatRequest) -> HeartbeatResponse

What it may return or raise: `coordinator/network/call.py`.
`coordinator/api/routes.py` maps each API key to its function; ApiVersions answers from that table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from rota.coordinator.network.call import Call, CloseConnection
from rota.coordinator.observe.client_telemetry import ClientTelemetry
from rota.coordinator.replica.durability import Durability
from rota.protocol.dataclass import dataclass

if TYPE_CHECKING:
    from rota.coordinator.config.broker import BrokerConfig
    from rota.coordinator.group_coordinator import GroupCoordinator
    from rota.coordinator.metadata.lost_brokers import LostBrokers
    from rota.coordinator.metadata.producer_ids import ProducerIds
    from rota.coordinator.metadata.topics import Topics
    from rota.coordinator.replica.client_throttle import ClientThrottle
    from rota.coordinator.replica.fetch_sessions import FetchSessions
    from rota.coordinator.replica.partitions import Partitions
    from rota.coordinator.replica.replication_throttle import ReplicationThrottle
    from rota.coordinator.scheduling.delayed_reply import DelayedReply
    from rota.coordinator.scheduling.timers import Timers
    from rota.coordinator.security.authorizer import Authorizer
    from rota.coordinator.security.denials import Denials
    from rota.coordinator.transaction_coordinator import TransactionCoordinator
    from rota.protocol.errors import ErrorCode


__all__ = ["Call", "CloseConnection", "Node"]


class VerifyTransaction(Protocol):
    """Asks the coordinator of a transaction whether partitions are in it."""

    def __call__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[tuple[str, int]],
        *,
        adds: bool,
    ) -> DelayedReply[dict[tuple[str, int], ErrorCode]]:
        """Return the error of each partition that has one. `adds` adds the partitions to the transaction."""


@dataclass(slots=True)
class Node:
    """The parts of the broker that its APIs use."""

    config: BrokerConfig
    topics: Topics  # names, ids, partition counts, configs: the cluster's metadata
    partitions: Partitions  # the partitions with a log on this broker
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verify_transaction: VerifyTransaction
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    timers: Timers  # call back at a time, unless cancelled
    now_ms: Callable[[], int]  # elapsed time, for deadlines; only differences mean anything
    wall_ms: Callable[[], int]  # ms since the epoch, for timestamps
    leader_throttle: ReplicationThrottle | None = None  # of what followers fetch; None for a broker alone
    client_throttle: ClientThrottle | None = None  # None: no client has a quota of bytes
    lost_brokers: LostBrokers | None = None  # that may be dead, or have just left; None for a broker alone
    telemetry: ClientTelemetry = field(default_factory=ClientTelemetry)  # the metrics that clients push
    durability: Durability = field(default_factory=Durability)  # group flush, off the loop; the shards' as well
    authorizer: Authorizer | None = None  # None: access control is off
    connected_ms: int = -(2**62)  # when the last connection was accepted, in elapsed time
    denials: Denials | None = None  # the audit log of the authorizer; None before the first denial
