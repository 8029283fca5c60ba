"""`/api/cluster`: brokers, controller, disks, and how many partitions are not as they should be."""

from __future__ import annotations

from itertools import islice
from sys import float_info
from typing import Any, Final

from rota.coordinator.metadata.client_quotas import all_quotas
from rota.coordinator.web.broker_requests import BrokerRequests
from rota.coordinator.web.site import Site, not_ready
from rota.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from rota.transport.handshake import software_version

LOG_DIRS_VERSION: Final = 4
QUOTAS_MAX: Final = 500


async def cluster(site: Site, requests: BrokerRequests) -> dict[str, Any]:
    """Return the cluster as this broker sees it."""
    topics = site.node.topics
    disks = {
        broker: _disk(answer) for broker, answer in await requests.send_request_to_all(_ALL_DIRS, LOG_DIRS_VERSION)
    }
    states = [state for topic in topics for state in topic.partitions]
    live = topics.brokers
    return {
        "cluster_id": topics.cluster_id,
        "broker_id": site.node.config.node_id,
        "controller_id": topics.controller_id,
        "version": software_version(),
        "is_read_only": site.is_read_only,
        "is_ready": not any(not_ready(site)),
        "topics": len(topics),
        "partitions": len(states),
        "under_replicated_partitions": sum(len(state.isr) < len(state.replicas) for state in states),
        "offline_partitions": sum(state.leader not in live for state in states),
        "quotas": quotas(site),
        "brokers": [
            {
                "broker_id": broker_id,
                "rack": broker.rack,
                "endpoints": [str(endpoint) for endpoint in broker.endpoints or site.node.config.listens],
                "is_controller": broker_id == topics.controller_id,
                "leaders": sum(state.leader == broker_id for state in states),
                "replicas": sum(broker_id in state.replicas for state in states),
                "in_sync_replicas": sum(broker_id in state.isr for state in states),
                **disks.get(broker_id, _NO_ANSWER),
            }
            for broker_id, broker in sorted(live.items())
        ],
    }


def quotas(site: Site) -> list[dict[str, Any]]:
    """Return the quotas of clients, at most QUOTAS_MAX, and how often each kind of them throttled here."""
    throttle = site.node.client_throttle
    throttled = {} if throttle is None else throttle.throttled
    rows = (
        {
            "entity": ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity),
            "quota": quota,
            "value": min(value, float_info.max),  # JSON has no infinity
            "throttled": throttled.get(quota, (0, 0))[0],
        }
        for entity, values in all_quotas(site.node.topics)
        for quota, value in sorted(values.items())
    )
    return list(islice(rows, QUOTAS_MAX))


_ALL_DIRS: Final = DescribeLogDirsRequest(topics=None)
_NO_ANSWER: Final[dict[str, Any]] = {"answers": False, "log_bytes": -1, "disk_bytes": -1, "disk_free_bytes": -1}


def _disk(answer: Any) -> dict[str, Any]:
    logs = [partition for each in answer.results for topic in each.topics for partition in topic.partitions]
    return {
        "answers": True,
        "log_bytes": sum(partition.partition_size for partition in logs),
        "disk_bytes": sum(each.total_bytes for each in answer.results),
        "disk_free_bytes": sum(each.usable_bytes for each in answer.results),
    }
