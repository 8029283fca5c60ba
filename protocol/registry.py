"""Every API that we can read and write: key, name, versions, message types. In the order of Kafka's keys.

ApiVersions is answered from here (for the APIs that `coordinator/api/routes.py` serves), and docs/APIS.md is rendered
from here: `python -m rota.protocol.registry` prints it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rota.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from rota.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from rota.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from rota.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from rota.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from rota.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from rota.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from rota.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rota.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from rota.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from rota.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from rota.protocol.messages.fetch import FetchRequest, FetchResponse
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rota.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from rota.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse
from rota.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from rota.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from rota.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from rota.protocol.messages.produce import ProduceRequest, ProduceResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from rota.protocol.wire import NEVER


@dataclass(frozen=True, slots=True)
class Api:
    """One API; `flexible` is the first flexible version, NEVER (above all others) when there is none."""

    key: int
    name: str
    versions: range
    flexible: int
    request: type[Any]
    response: type[Any]

    @property
    def title(self) -> str:
        """The first line of the message file."""
        return self._head[0]

    @property
    def notes(self) -> str:
        """What each version brought, on one line: the rest of the file's head."""
        return self._head[1]

    @property
    def _head(self) -> tuple[str, str]:
        title, _, rest = str(sys.modules[self.request.__module__].__doc__).partition("\n\n")
        return title, " · ".join(rest.split("\n")).strip(" ·")


_MESSAGES: Final[tuple[tuple[type[Any], type[Any]], ...]] = (
    (ProduceRequest, ProduceResponse),
    (FetchRequest, FetchResponse),
    (ListOffsetsRequest, ListOffsetsResponse),
    (MetadataRequest, MetadataResponse),
    (OffsetCommitRequest, OffsetCommitResponse),
    (OffsetFetchRequest, OffsetFetchResponse),
    (FindCoordinatorRequest, FindCoordinatorResponse),
    (JoinGroupRequest, JoinGroupResponse),
    (HeartbeatRequest, HeartbeatResponse),
    (LeaveGroupRequest, LeaveGroupResponse),
    (SyncGroupRequest, SyncGroupResponse),
    (DescribeGroupsRequest, DescribeGroupsResponse),
    (ListGroupsRequest, ListGroupsResponse),
    (ApiVersionsRequest, ApiVersionsResponse),
    (CreateTopicsRequest, CreateTopicsResponse),
    (DeleteTopicsRequest, DeleteTopicsResponse),
    (DeleteRecordsRequest, DeleteRecordsResponse),
    (InitProducerIdRequest, InitProducerIdResponse),
    (OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    (DescribeConfigsRequest, DescribeConfigsResponse),
    (AlterConfigsRequest, AlterConfigsResponse),
    (DescribeLogDirsRequest, DescribeLogDirsResponse),
    (CreatePartitionsRequest, CreatePartitionsResponse),
    (DeleteGroupsRequest, DeleteGroupsResponse),
    (ElectLeadersRequest, ElectLeadersResponse),
    (IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
    (OffsetDeleteRequest, OffsetDeleteResponse),
    (DescribeClusterRequest, DescribeClusterResponse),
    (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
    (DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
)


def _api(request: type[Any], response: type[Any]) -> Api:
    name = request.__name__.removesuffix("Request")
    return Api(request.KEY, name, request.VERSIONS, request.FLEXIBLE, request, response)


APIS: Final[dict[int, Api]] = {request.KEY: _api(request, response) for request, response in _MESSAGES}


def table() -> Iterator[str]:
    """The lines of docs/APIS.md."""
    yield from _HEAD
    for api in APIS.values():
        first, last = api.versions[0], api.versions[-1]
        versions = str(first) if first == last else f"{first}-{last}"
        flexible = "never" if api.flexible == NEVER else str(api.flexible)
        yield f"| {api.key} | {api.name} | {versions} | {flexible} | {api.notes} |"


_HEAD: Final = (
    "# The APIs on the wire",
    "",
    "What `protocol/` reads and writes, rendered from `protocol/registry.py` by `python -m rota.protocol.registry`; a",
    "test keeps this page fresh. The broker advertises those of them that `coordinator/api/routes.py` serves.",
    "",
    "| key | API | versions | flexible from | what the versions brought |",
    "|---|---|---|---|---|",
)

if __name__ == "__main__":
    print("\n".join(table()))
