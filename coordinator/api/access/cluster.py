"""Guards of the APIs that concern the cluster, configs, ACLs, users and producer ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from rota.coordinator.api import describe_configs as resource_types
from rota.coordinator.api.access.request import CLUSTER, GROUP, TOPIC, Guard, RequestAccess, Serve, after
from rota.coordinator.api.create_delegation_token import with_refusal
from rota.coordinator.security.acl import CLUSTER_NAME
from rota.coordinator.security.operations import Operation, ResourceType
from rota.coordinator.security.principal import Principal
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_client_quotas import AlterClientQuotasResponse, EntryResult
from rota.protocol.messages.alter_configs import AlterConfigsResourceResponse
from rota.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from rota.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from rota.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from rota.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse
from rota.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from rota.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse
from rota.protocol.messages.describe_acls import DescribeAclsResponse
from rota.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse
from rota.protocol.messages.describe_cluster import DescribeClusterRequest
from rota.protocol.messages.describe_configs import DescribeConfigsResult
from rota.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from rota.protocol.messages.describe_quorum import DescribeQuorumResponse
from rota.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from rota.protocol.messages.elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rota.protocol.messages.list_config_resources import ListConfigResourcesResponse
from rota.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from rota.protocol.messages.unregister_broker import UnregisterBrokerResponse
from rota.protocol.messages.update_features import UpdateFeaturesResponse
from rota.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
MESSAGE: Final = "Cluster authorization failed."
_O = Operation


def on_cluster(operation: Operation, refused: Callable[[Any], Any]) -> Guard:
    """Return the guard of an API that needs one operation on the cluster; `refused(request)` is its error response."""

    def guard(access: RequestAccess, request: Any, serve: Serve) -> Any:
        return serve(request) if access.authorize(operation, CLUSTER) else refused(request)

    return guard


def describe_cluster(access: RequestAccess, request: DescribeClusterRequest, serve: Serve) -> Any:
    """Every principal may see the brokers; the authorized operations need DESCRIBE on the cluster."""
    if not request.include_cluster_authorized_operations:
        return serve(request)
    operations = access.operations(CLUSTER) if access.is_allowed(_O.DESCRIBE, CLUSTER) else 0
    return after(serve(request), lambda response: replace(response, cluster_authorized_operations=operations))


def init_producer_id(access: RequestAccess, request: InitProducerIdRequest, serve: Serve) -> Any:
    """WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on any topic."""
    if request.transactional_id is not None:
        if access.authorize(_O.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            return serve(request)
        return InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if access.is_allowed(_O.IDEMPOTENT_WRITE, CLUSTER) or access.is_any_allowed(_O.WRITE, TOPIC):
        return serve(request)
    access.authorize(_O.IDEMPOTENT_WRITE, CLUSTER)  # into the audit log
    return InitProducerIdResponse(error_code=DENIED)


def create_delegation_token(access: RequestAccess, request: CreateDelegationTokenRequest, serve: Serve) -> Any:
    """A token of another owner needs CREATE_TOKENS on that user, from a client that may ask for tokens at all."""
    response: CreateDelegationTokenResponse = serve(request)
    owner = Principal(response.principal_type, response.principal_name)
    if owner == access.call.principal or response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
        return response
    if access.authorize(_O.CREATE_TOKENS, ResourceType.USER, str(owner)):
        return response
    return with_refusal(response, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)


# ---- reassignments, elections, log directories


def _replica_log_dirs(request: Any) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=DENIED)
                    for index in topic.partitions
                ),
            )
            for folder in request.dirs
            for topic in folder.topics
        )
    )


def write_txn_markers(access: RequestAccess, request: WriteTxnMarkersRequest, serve: Serve) -> Any:
    """Brokers have CLUSTER_ACTION; who ends a hanging transaction has ALTER."""
    if access.is_allowed(_O.ALTER, CLUSTER) or access.authorize(_O.CLUSTER_ACTION, CLUSTER):
        return serve(request)
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=DENIED)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


def _elections(request: Any) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=DENIED,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    PartitionResult(partition_id=index, error_code=DENIED, error_message=MESSAGE)
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def _reassignments(request: Any) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=DENIED,
        error_message=MESSAGE,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=DENIED, error_message=MESSAGE
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


alter_replica_log_dirs: Final = on_cluster(_O.ALTER, _replica_log_dirs)
describe_log_dirs: Final = on_cluster(_O.DESCRIBE, lambda _: DescribeLogDirsResponse(error_code=DENIED))
elect_leaders: Final = on_cluster(_O.ALTER, _elections)
alter_partition_reassignments: Final = on_cluster(_O.ALTER, _reassignments)
list_partition_reassignments: Final = on_cluster(
    _O.DESCRIBE, lambda _: ListPartitionReassignmentsResponse(error_code=DENIED, error_message=MESSAGE)
)
describe_quorum: Final = on_cluster(
    _O.DESCRIBE, lambda _: DescribeQuorumResponse(error_code=DENIED, error_message=MESSAGE)
)
update_features: Final = on_cluster(
    _O.ALTER, lambda _: UpdateFeaturesResponse(error_code=DENIED, error_message=MESSAGE)
)
unregister_broker: Final = on_cluster(
    _O.ALTER, lambda _: UnregisterBrokerResponse(error_code=DENIED, error_message=MESSAGE)
)


# ---- ACLs, users, quotas


def _scram(request: Any) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys(each.name for each in (*request.deletions, *request.upsertions))
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(user=user, error_code=DENIED, error_message=MESSAGE) for user in users
        )
    )


describe_acls: Final = on_cluster(_O.DESCRIBE, lambda _: DescribeAclsResponse(error_code=DENIED, error_message=MESSAGE))
create_acls: Final = on_cluster(
    _O.ALTER,
    lambda request: CreateAclsResponse(
        results=tuple(AclCreationResult(error_code=DENIED, error_message=MESSAGE) for _ in request.creations)
    ),
)
delete_acls: Final = on_cluster(
    _O.ALTER,
    lambda request: DeleteAclsResponse(
        filter_results=tuple(DeleteAclsFilterResult(error_code=DENIED, error_message=MESSAGE) for _ in request.filters)
    ),
)
describe_client_quotas: Final = on_cluster(
    _O.DESCRIBE_CONFIGS,
    lambda _: DescribeClientQuotasResponse(error_code=DENIED, entries=None),
)
alter_client_quotas: Final = on_cluster(
    _O.ALTER_CONFIGS,
    lambda request: AlterClientQuotasResponse(
        entries=tuple(
            EntryResult(error_code=DENIED, error_message=MESSAGE, entity=entry.entity) for entry in request.entries
        )
    ),
)
describe_user_scram_credentials: Final = on_cluster(
    _O.DESCRIBE,
    lambda request: DescribeUserScramCredentialsResponse(
        error_code=DENIED,
        results=tuple(DescribeUserScramCredentialsResult(user="", error_code=DENIED) for _ in request.users or ()),
    ),  # as Kafka, which names no user
)
alter_user_scram_credentials: Final = on_cluster(_O.ALTER, _scram)


# ---- configs

_CONFIG_RESOURCES: Final[dict[int, tuple[ResourceType, ErrorCode]]] = {
    resource_types.TOPIC: (TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    resource_types.BROKER: (CLUSTER, DENIED),
    resource_types.BROKER_LOGGER: (CLUSTER, DENIED),
    resource_types.CLIENT_METRICS: (CLUSTER, DENIED),
    resource_types.GROUP: (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}
_MESSAGES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    DENIED: MESSAGE,
}


def on_configs(
    operation: Operation,
    field: str,
    result_type: type[Any],
    resource_types: Mapping[int, tuple[ResourceType, ErrorCode]] = _CONFIG_RESOURCES,
) -> Guard:
    """Return the guard of an API on config resources: the operation on the topic, the group or the cluster.

    `field` of the response has the results. A resource of another type is left to the API, which refuses it.
    """

    def guard(access: RequestAccess, request: Any, serve: Serve) -> Any:
        allowed, refused = [], []
        for resource in request.resources:
            resource_type, code = resource_types.get(resource.resource_type, (None, DENIED))
            name = CLUSTER_NAME if resource_type is CLUSTER else resource.resource_name
            if resource_type is None or access.authorize(operation, resource_type, name):
                allowed.append(resource)
            else:
                refused.append(_refused(result_type, resource, code))
        if not refused:
            return serve(request)
        return after(
            serve(replace(request, resources=tuple(allowed))),
            lambda response: replace(response, **{field: (*getattr(response, field), *refused)}),
        )

    return guard


def _refused(result_type: type[Any], resource: Any, code: ErrorCode) -> Any:
    is_logger_change = (
        resource.resource_type == resource_types.BROKER_LOGGER and result_type is AlterConfigsResourceResponse
    )
    return result_type(
        error_code=code,
        error_message=None if is_logger_change else _MESSAGES[code],  # as Kafka
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


_describe_configs: Final = on_configs(_O.DESCRIBE_CONFIGS, "results", DescribeConfigsResult)


def describe_configs(access: RequestAccess, request: Any, serve: Serve) -> Any:
    """Let the API refuse a resource of an unknown type, and the others with it, before any is asked for."""
    is_refused = resource_types.unknown_type(request) is not None
    return serve(request) if is_refused else _describe_configs(access, request, serve)


alter_configs: Final = on_configs(
    _O.ALTER_CONFIGS,
    "responses",
    AlterConfigsResourceResponse,
    {kind: check for kind, check in _CONFIG_RESOURCES.items() if kind != resource_types.BROKER_LOGGER},
)
incremental_alter_configs: Final = on_configs(_O.ALTER_CONFIGS, "responses", AlterConfigsResourceResponse)
list_config_resources: Final = on_cluster(_O.DESCRIBE_CONFIGS, lambda _: ListConfigResourcesResponse(error_code=DENIED))
