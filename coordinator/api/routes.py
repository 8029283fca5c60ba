"""Which function answers which API: the supported surface, from which ApiVersions is answered too.

Law
    What is not here is not advertised, and what is here works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rota.coordinator.api import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from rota.coordinator.server.dispatch import Route
from rota.protocol.registry import APIS

SERVES: Final[dict[int, Callable[..., Any]]] = {
    0: produce.produce,
    1: fetch.fetch,
    2: list_offsets.list_offsets,
    3: metadata.metadata,
    8: offset_commit.offset_commit,
    9: offset_fetch.offset_fetch,
    10: find_coordinator.find_coordinator,
    11: join_group.join_group,
    12: heartbeat.heartbeat,
    13: leave_group.leave_group,
    14: sync_group.sync_group,
    15: describe_groups.describe_groups,
    16: list_groups.list_groups,
    18: api_versions.api_versions,
    19: create_topics.create_topics,
    20: delete_topics.delete_topics,
    21: delete_records.delete_records,
    22: init_producer_id.init_producer_id,
    23: offset_for_leader_epoch.offset_for_leader_epoch,
    32: describe_configs.describe_configs,
    33: alter_configs.alter_configs,
    35: describe_log_dirs.describe_log_dirs,
    37: create_partitions.create_partitions,
    42: delete_groups.delete_groups,
    44: incremental_alter_configs.incremental_alter_configs,
    47: offset_delete.offset_delete,
    60: describe_cluster.describe_cluster,
    75: describe_topic_partitions.describe_topic_partitions,
}


def routes() -> dict[int, Route]:
    """The table that a dispatcher works from."""
    return {key: _route(key, serve) for key, serve in SERVES.items()}


def _route(key: int, serve: Callable[..., Any]) -> Route:
    api = APIS[key]
    stranger = api_versions.stranger if key == api_versions.KEY else None
    return Route(key, api.name, api.versions, api.flexible, api.request, api.response, serve, stranger)
