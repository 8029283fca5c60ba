"""The cluster's APIs, configs and producer ids."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.access import access_world
from tests.unit.coordinator.api.access.access_world import GROUP, TOPIC, AccessWorld, granted

from rota.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from rota.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from rota.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rota.protocol.messages.init_producer_id import InitProducerIdRequest

ON_CLUSTER = "CLUSTER:LITERAL:kafka-cluster"


def test_each_resource_of_a_config_request_is_checked() -> None:
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((2, TOPIC), (2, "t"), (4, "0"), (32, GROUP))
    )
    world = AccessWorld(granted("TOPIC:LITERAL:t ALTER_CONFIGS"))
    results = world.send(32, DescribeConfigsRequest(resources=resources), 4).results
    codes = {(result.resource_type, result.resource_name): result.error_code for result in results}
    assert codes == {(2, TOPIC): 29, (2, "t"): 0, (4, "0"): 31, (32, GROUP): 30}
    assert not [result.configs for result in results if result.error_code and result.configs]
    resources += (DescribeConfigsResource(resource_type=77, resource_name="x", configuration_keys=None),)
    results = world.send(32, DescribeConfigsRequest(resources=resources), 4).results
    assert [result.error_code for result in results] == [42] * 5, "as in Kafka, before permissions are asked for"


@pytest.mark.parametrize(
    ("grant", "transactional_id", "code"),
    [
        ((), None, 31),
        ((f"{ON_CLUSTER} IDEMPOTENT_WRITE",), None, 0),
        (("TOPIC:PREFIXED:any WRITE",), None, 0),
        (("TOPIC:PREFIXED:any READ",), None, 31),
        (("TRANSACTIONAL_ID:LITERAL:x WRITE",), "y", 53),
    ],
)
def test_a_producer_id_needs_a_permission_to_write(
    grant: tuple[str, ...], transactional_id: str | None, code: int
) -> None:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    response = AccessWorld(granted(*grant)).send(22, request, 4)
    assert (response.error_code, response.producer_id >= 0) == (code, not code)


@pytest.mark.parametrize(
    ("owner", "grant", "code", "time_ms"),
    [
        ("bob", (), 65, -1),
        ("bob", ("USER:LITERAL:User:bob CREATE_TOKENS",), 61, 0),
        ("alice", (), 61, 0),
        (None, (), 61, 0),
    ],
)
def test_dt1_a_token_of_another_owner_needs_a_permission(
    owner: str | None, grant: tuple[str, ...], code: int, time_ms: int
) -> None:
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name=owner)
    response = AccessWorld(granted(*grant)).send(38, request, 3)
    assert (response.error_code, response.expiry_timestamp_ms, response.max_timestamp_ms) == (code, time_ms, time_ms)
    assert response.principal_name == owner or not owner


def test_all_principals_see_the_brokers_and_describe_shows_the_operations() -> None:
    request = next(access_world.describe_cluster(0))
    hidden = AccessWorld(granted()).send(60, request, 0)
    assert (hidden.error_code, len(hidden.brokers), hidden.cluster_authorized_operations) == (0, 1, 0)
    shown = AccessWorld(granted(f"{ON_CLUSTER} ALTER")).send(60, request, 0)
    assert shown.cluster_authorized_operations == 1 << 7 | 1 << 8


def test_a_refused_reassignment_has_an_error_for_each_partition() -> None:
    partitions = tuple(ReassignablePartition(partition_index=index, replicas=(0,)) for index in (0, 1))
    request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=TOPIC, partitions=partitions),))
    response = AccessWorld(granted()).send(45, request, 0)
    assert response.error_code == 31
    assert [each.error_code for topic in response.responses for each in topic.partitions] == [31, 31]
