"""`/api/topics`, `/api/topic` and `/api/records`: topics, their partitions, configs and records.

Law
    WB35 The page of a topic asks the brokers for the logs of that topic alone, however many others there are.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any, Final

from rota.coordinator.metadata.topic import Topic
from rota.coordinator.web.broker_requests import ApiError, BrokerRequests, check
from rota.coordinator.web.offsets import EARLIEST, LATEST, UNKNOWN, offsets_at, topic_named
from rota.coordinator.web.record_page import decode_page
from rota.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rota.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rota.protocol.records.errors import CorruptBatch

TOPIC_RESOURCE: Final = 2
CONFIGS_VERSION: Final = 4
LOG_DIRS_VERSION: Final = 4
FETCH_VERSION: Final = 12
RECORDS_MAX: Final = 500  # of one page
FETCH_BYTES_MAX: Final = 1024 * 1024
SOURCES: Final = {1: "topic", 2: "broker", 3: "cluster", 4: "static", 5: "default", 6: "logger", 8: "group"}


async def topics(requests: BrokerRequests) -> dict[str, Any]:
    """Return all topics, by name."""
    sizes = await _sizes(requests, DescribeLogDirsRequest(topics=None))
    return {"topics": [_summary(topic, sizes) for topic in sorted(requests.node.topics, key=lambda topic: topic.name)]}


def _summary(topic: Topic, sizes: dict[tuple[str, int], int]) -> dict[str, Any]:
    leaders = [sizes.get((topic.name, state.index), UNKNOWN) for state in topic.partitions]
    return {
        "topic": topic.name,
        "is_internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "under_replicated_partitions": sum(len(state.isr) < len(state.replicas) for state in topic.partitions),
        "size_bytes": sum(max(size, 0) for size in leaders),
    }


async def topic(requests: BrokerRequests, name: str) -> dict[str, Any]:
    """Return the partitions and configs of a topic. Raises ApiError."""
    found = topic_named(requests, name)
    keys = [(name, state.index) for state in found.partitions]
    logs = DescribableLogDirTopic(topic=name, partitions=tuple(state.index for state in found.partitions))
    starts, ends, sizes, configs = await asyncio.gather(
        offsets_at(requests, dict.fromkeys(keys, EARLIEST)),
        offsets_at(requests, dict.fromkeys(keys, LATEST)),
        _sizes(requests, DescribeLogDirsRequest(topics=(logs,))),
        _configs(requests, name),
    )
    return {
        **_summary(found, sizes),
        "topic_id": base64.urlsafe_b64encode(found.topic_id).decode().rstrip("="),
        "partition_list": [
            {
                "partition": state.index,
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "replicas": list(state.replicas),
                "isr": list(state.isr),
                "start_offset": starts[name, state.index],
                "end_offset": ends[name, state.index],
                "size_bytes": sizes.get((name, state.index), UNKNOWN),
            }
            for state in found.partitions
        ],
        "configs": configs,
    }


async def _sizes(requests: BrokerRequests, request: DescribeLogDirsRequest) -> dict[tuple[str, int], int]:
    """Return the size of each partition's log on its leader."""
    found: dict[tuple[str, int], int] = {}
    for broker_id, answer in await requests.send_request_to_all(request, LOG_DIRS_VERSION):
        for entry in (topic for each in answer.results for topic in each.topics):
            for partition in entry.partitions:
                state = requests.node.topics.partition(entry.name, partition.partition_index)
                if state is not None and state.leader == broker_id:
                    found[entry.name, partition.partition_index] = partition.partition_size
    return found


async def _configs(requests: BrokerRequests, name: str) -> list[dict[str, Any]]:
    resource = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=(resource,), include_documentation=True)
    answer = await requests.send_request(requests.own_id, request, CONFIGS_VERSION)
    (result,) = answer.results
    check(result.error_code, f"topic {name!r}")
    return [
        {
            "name": config.name,
            "value": None if config.is_sensitive else config.value,
            "source": SOURCES.get(config.config_source, "unknown"),
            "is_read_only": config.read_only,
            "documentation": config.documentation or "",
        }
        for config in sorted(result.configs, key=lambda config: config.name)
    ]


# ---- records


async def records(
    requests: BrokerRequests, name: str, index: int, *, offset: int | None, time_ms: int | None, limit: int
) -> dict[str, Any]:
    """Return records from an offset or a time on; by default the last ones. Raises ApiError."""
    state = next((state for state in topic_named(requests, name).partitions if state.index == index), None)
    if state is None:
        raise ApiError(404, f"topic {name!r} has no partition {index}")
    key, limit = (name, index), max(1, min(limit, RECORDS_MAX))
    start = (await offsets_at(requests, {key: EARLIEST}))[key]
    end = (await offsets_at(requests, {key: LATEST}))[key]
    if UNKNOWN in (start, end):
        raise ApiError(503, f"the leader of {name}-{index} does not answer")
    if time_ms is not None:
        found = (await offsets_at(requests, {key: time_ms}))[key]
        offset = end if found == UNKNOWN else found
    first = max(start, end - limit) if offset is None else offset
    first = min(max(first, start), end)
    page, next_offset = await _page(requests, state.leader, key, first, limit)
    return {
        "topic": name,
        "partition": index,
        "start_offset": start,
        "end_offset": end,
        "next_offset": next_offset,
        "records": page,
    }


async def _page(
    requests: BrokerRequests, leader: int, key: tuple[str, int], first: int, limit: int
) -> tuple[list[dict[str, Any]], int]:
    partition = FetchPartition(partition=key[1], fetch_offset=first, partition_max_bytes=FETCH_BYTES_MAX)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES_MAX,
        topics=(FetchTopic(topic=key[0], partitions=(partition,)),),
    )
    answer = await requests.send_request(leader, request, FETCH_VERSION)
    check(answer.error_code, f"{key[0]}-{key[1]}")
    (response,) = answer.responses[0].partitions
    check(response.error_code, f"{key[0]}-{key[1]}")
    data = bytes(response.records or b"")
    try:
        return await asyncio.to_thread(decode_page, data, first, limit)
    except CorruptBatch as damage:
        raise ApiError(502, f"{key[0]}-{key[1]} at offset {first}: {damage}") from damage
