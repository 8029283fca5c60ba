"""The table of supported APIs: the function that handles each. ApiVersions is answered from it.

The function of an API has the name of its file. A file is loaded, with its messages, at the first request for its API:
loading all of them would take a third of the time from start to first response.

Law
    ApiVersions advertises exactly the APIs of this table, and each of them works.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from rota.coordinator.network.call import Route
from rota.protocol.registry import APIS

SERVES: Final[dict[int, str]] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    34: "alter_replica_log_dirs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    38: "create_delegation_token",
    39: "renew_delegation_token",
    40: "expire_delegation_token",
    41: "describe_delegation_token",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    55: "describe_quorum",
    57: "update_features",
    60: "describe_cluster",
    61: "describe_producers",
    64: "unregister_broker",
    65: "describe_transactions",
    66: "list_transactions",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    71: "get_telemetry_subscriptions",
    72: "push_telemetry",
    74: "list_config_resources",
    75: "describe_topic_partitions",
}


class Routes(Mapping[int, Route]):
    """Route by API key. With `checks_access` each API stands behind its guard."""

    def __init__(self, *, checks_access: bool) -> None:
        self._checks_access = checks_access

    def __getitem__(self, key: int) -> Route:
        api, name = APIS[key], SERVES[key]
        served = import_module(f"rota.coordinator.api.{name}")
        unsupported_version = getattr(served, "unsupported_version", None)  # ApiVersions answers any version
        serve, codecs = getattr(served, name), getattr(served, "codecs", None)
        if self._checks_access:
            serve = import_module("rota.coordinator.api.access.table").guarded(key, name, serve)
        return Route(
            key, api.name, api.versions, api.flexible, api.request, api.response, serve, unsupported_version, codecs
        )

    def __iter__(self) -> Iterator[int]:
        return iter(SERVES)

    def __len__(self) -> int:
        return len(SERVES)


def routes(*, checks_access: bool = False) -> Mapping[int, Route]:
    """Return the table for a dispatcher. A broker with an authorizer `checks_access` of all that comes from outside."""
    return Routes(checks_access=checks_access)
