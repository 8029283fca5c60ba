"""Who is asked about which configuration, and what a change says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.admin.conftest import Pair

from rota.client.admin.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    ResourceType,
    _error_context,
    alter_configs,
    describe_configs,
)
from rota.client.admin.requests import Deadline
from rota.client.errors import AdminFailed, BrokerError, IllegalUse
from rota.client.network.cluster import Cluster
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from rota.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC, OTHER = ConfigResource.topic("a"), ConfigResource.topic("b")
WHATEVER: dict[str, Any] = {"keys": None, "synonyms": False, "documentation": False}


def described(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    entry = DescribeConfigsResourceResult(
        name="retention.ms",
        value="5",
        config_source=1,
        config_type=5,
        documentation="how long",
        synonyms=(DescribeConfigsSynonym(name="log.retention.ms", value="6", source=99),),
    )
    results = (
        DescribeConfigsResult(resource_type=item.resource_type, resource_name=item.resource_name, configs=(entry,))
        for item in request.resources
    )
    return DescribeConfigsResponse(results=tuple(results))


def altered(request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    responses = (
        AlterConfigsResourceResponse(
            resource_type=item.resource_type,
            resource_name=item.resource_name,
            error_code=40 if item.resource_name == "b" else 0,
            error_message="no such config" if item.resource_name == "b" else None,
        )
        for item in request.resources
    )
    return IncrementalAlterConfigsResponse(responses=tuple(responses))


async def test_broker_resources_are_requested_from_that_broker(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    for broker in pair.both:
        broker.on(DescribeConfigsRequest, described)
    wanted = [TOPIC, ConfigResource.broker(1), ConfigResource.broker(None), OTHER]
    answer = await describe_configs(cluster, wanted, deadline, **WHATEVER)
    assert list(answer) == wanted
    requests: Any = pair.requests(DescribeConfigsRequest)
    names = [
        [sorted(item.resource_name for item in request.resources) for request in received] for received in requests
    ]
    assert ["1"] in names[1]
    assert ["", "a", "b"] in names[0] + names[1]


async def test_an_entry_has_its_source_and_synonyms(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    for broker in pair.both:
        broker.on(DescribeConfigsRequest, described)
    answer = await describe_configs(cluster, [TOPIC], deadline, keys=["x"], synonyms=True, documentation=True)
    entry = answer[TOPIC]["retention.ms"]
    synonym = ConfigSynonym("log.retention.ms", "6", ConfigSource.UNKNOWN)
    assert entry == ConfigEntry(
        "retention.ms", "5", ConfigSource.TOPIC, False, False, ConfigType.LONG, "how long", (synonym,)
    )
    assert not entry.is_default
    (request,) = [item for received in pair.requests(DescribeConfigsRequest) for item in received]
    assert request.resources[0].configuration_keys == ("x",)  # type: ignore[attr-defined]
    assert request.include_synonyms  # type: ignore[attr-defined]


async def test_changes_become_set_delete_append_and_subtract(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(IncrementalAlterConfigsRequest, altered)
    changes = {
        "retention.ms": 5,
        "preallocate": True,
        "segment.bytes": None,
        "cleanup.policy": ConfigChange.append("compact"),
        "x": ConfigChange.subtract("y"),
        "z": ConfigChange.set("1"),
        "w": ConfigChange.delete(),
    }
    await alter_configs(cluster, {TOPIC: changes}, deadline, validate_only=True)
    (request,) = pair.requests(IncrementalAlterConfigsRequest)[0]
    assert request.validate_only  # type: ignore[attr-defined]
    sent = request.resources[0].configs  # type: ignore[attr-defined]
    assert [(item.name, item.config_operation, item.value) for item in sent] == [
        ("retention.ms", 0, "5"),
        ("preallocate", 0, "true"),
        ("segment.bytes", 1, None),
        ("cleanup.policy", 2, "compact"),
        ("x", 3, "y"),
        ("z", 0, "1"),
        ("w", 1, None),
    ]


async def test_each_resource_has_its_own_answer(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(IncrementalAlterConfigsRequest, altered)
    with pytest.raises(AdminFailed, match=r"\(b\): INVALID_CONFIG \(40\): no such config. describe_configs") as failed:
        await alter_configs(cluster, {TOPIC: {"x": 1}, OTHER: {"x": 1}}, deadline, validate_only=False)
    assert list(failed.value.done) == [TOPIC]
    error = failed.value.failed[OTHER]
    assert isinstance(error, BrokerError)
    assert (error.topic, error.broker) == ("b", None)


@pytest.mark.parametrize(
    ("resource", "named"),
    [
        (ConfigResource(ResourceType.GROUP, "billing"), "altering configs (group billing): INVALID_CONFIG"),
        (ConfigResource.broker(1), "altering configs (broker 1): INVALID_CONFIG"),
        (ConfigResource.broker(None), "altering configs: INVALID_CONFIG"),
        (ConfigResource(ResourceType.CLIENT_METRICS, "m"), "altering configs: INVALID_CONFIG"),
    ],
)
def test_an_error_names_its_resource_by_its_kind(resource: ConfigResource, named: str) -> None:
    context = _error_context(resource)
    assert str(BrokerError(ErrorCode.INVALID_CONFIG, "altering configs", **context._asdict())).startswith(named)


async def test_a_broker_has_a_number(cluster: Cluster, deadline: Deadline) -> None:
    named = ConfigResource(ResourceType.BROKER, "one")
    with pytest.raises(IllegalUse, match="broker one: a broker is named by its number"):
        await describe_configs(cluster, [named], deadline, **WHATEVER)


def test_a_resource_reads_well() -> None:
    assert [str(item) for item in (TOPIC, ConfigResource.broker(3), ConfigResource.broker(None))] == [
        "topic a",
        "broker 3",
        "broker",
    ]
