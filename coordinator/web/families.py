"""The metrics by name, with their meaning and Kafka's name if it has one. Dashboard and alerts use these.

Law
    OB3 Only the families of this table are exposed, with these labels. The values of a label are bounded: those of
        groups, topics and partitions by the limits of samples.py, the others by lists of ours.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rota.protocol.dataclass import dataclass


class Kind(Enum):
    """The type of a family."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """`name` is without the `_total` of a counter, which the exposition adds."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_PARTITION, _GROUP_PARTITION = ("topic", "partition"), ("group", "topic", "partition")

_ALL: Final = (
    Family("rota_info", _G, "Version of this broker; always 1.", ("version", "cluster_id", "node_id")),
    Family("rota_ready", _G, "1 while /readyz answers 200."),
    # partitions and replication
    Family(
        "rota_under_replicated_partitions", _G, "Led here, with fewer in-sync replicas than replicas (Kafka: same)."
    ),
    Family("rota_under_min_isr_partitions", _G, "Led here, with an ISR below min.insync.replicas (UnderMinIsr…)."),
    Family("rota_offline_replicas", _G, "Replicas here whose log has failed (OfflineReplicaCount)."),
    Family("rota_offline_partitions", _G, "Without a leader; on the controller only (OfflinePartitionsCount)."),
    Family("rota_active_controller", _G, "1 on the controller (ActiveControllerCount)."),
    Family("rota_leaders", _G, "Partitions that this broker leads (LeaderCount)."),
    Family("rota_replicas", _G, "Replicas on this broker (PartitionCount)."),
    Family("rota_brokers", _G, "Live brokers of the cluster (ActiveBrokerCount)."),
    Family("rota_topics", _G, "Topics of the cluster (GlobalTopicCount)."),
    Family("rota_partitions", _G, "Partitions of the cluster (GlobalPartitionCount)."),
    Family("rota_isr_shrinks", _C, "Replicas left an ISR of a partition led here (IsrShrinksPerSec)."),
    Family("rota_isr_expands", _C, "Replicas joined an ISR of a partition led here (IsrExpandsPerSec)."),
    # requests
    Family(
        "rota_request_latency_seconds",
        _H,
        "From the reading of a request to the writing of its reply (TotalTimeMs); its count is RequestsPerSec.",
        ("api",),
    ),
    Family("rota_request_errors", _C, "Errors that were answered (ErrorsPerSec).", ("api", "error")),
    Family("rota_connections", _G, "Open connections of clients (connection-count)."),
    Family("rota_connections_opened", _C, "Connections that were accepted (connection-creation-total)."),
    Family("rota_connections_refused", _C, "Connections above max.connections or max.connections.per.ip."),
    Family("rota_client_throttles", _C, "Requests, or connections, that a quota of a client throttled.", ("quota",)),
    Family("rota_client_throttle_seconds", _C, "Throttle time of these (throttle-time).", ("quota",)),
    Family("rota_request_memory_bytes", _G, "Bytes of requests and unread replies in memory."),
    Family("rota_request_memory_limit_bytes", _G, "The limit of these (queued.max.request.bytes)."),
    # topics and logs
    Family("rota_topic_bytes_in", _C, "Bytes of producers' batches that were appended (BytesInPerSec).", ("topic",)),
    Family("rota_topic_records_in", _C, "Records that were appended (MessagesInPerSec).", ("topic",)),
    Family("rota_topic_bytes_out", _C, "Bytes of batches that consumers were sent (BytesOutPerSec).", ("topic",)),
    Family("rota_log_size_bytes", _G, "Size of the log here (Log Size).", _PARTITION),
    Family("rota_log_start_offset", _G, "First offset of the log here (LogStartOffset).", _PARTITION),
    Family("rota_log_end_offset", _G, "Offset after the last record of the log here (LogEndOffset).", _PARTITION),
    # groups
    Family(
        "rota_coordinator_shards",
        _G,
        "Partitions of __consumer_offsets by what this broker does with them.",
        ("state",),
    ),
    Family("rota_coordinator_loads", _C, "Partitions of __consumer_offsets that were loaded to coordinate them."),
    Family("rota_coordinator_load_seconds", _C, "Time of these (partition-load-time)."),
    Family("rota_groups", _G, "Groups that are coordinated here, by state (NumGroups…).", ("state",)),
    Family("rota_members", _G, "Members of these groups, by the state of the group.", ("state",)),
    Family("rota_group_members", _G, "Members of a group.", ("group",)),
    Family("rota_rebalances", _C, "Rebalances that began, by cause (group-rebalance-count).", ("cause",)),
    Family("rota_rebalance_duration_seconds", _H, "From its beginning to the assignment, by cause.", ("cause",)),
    Family("rota_group_lag_records", _G, "Records after the committed offset of the group.", _GROUP_PARTITION),
    Family(
        "rota_group_lag_seconds",
        _G,
        "Time since the oldest unread record was appended; with CreateTime, since the producer's timestamp of it.",
        _GROUP_PARTITION,
    ),
    Family(
        "rota_group_findings",
        _G,
        "What the health rules find wrong with a group now: findings by rule and severity.",
        ("group", "code", "severity"),
    ),
    # the process
    Family("rota_loop_stalls", _C, "Times that the event loop stood still for more than 50 ms."),
    Family("rota_loop_stall_seconds", _C, "Time of these."),
)

FAMILIES: Final = {family.name: family for family in _ALL}


def sample_names() -> frozenset[str]:
    """Return every name that a query may use: `_total` of counters, `_bucket`, `_sum` and `_count` of histograms."""
    suffixes = {_C: ("_total",), _G: ("",), _H: ("_bucket", "_sum", "_count")}
    return frozenset(family.name + suffix for family in _ALL for suffix in suffixes[family.kind])
