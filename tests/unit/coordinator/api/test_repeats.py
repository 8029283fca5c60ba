from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.api.consumer_group_describe import consumer_group_describe
from rota.coordinator.api.describe_configs import describe_configs
from rota.coordinator.api.describe_groups import describe_groups
from rota.coordinator.api.describe_producers import describe_producers
from rota.coordinator.api.describe_transactions import describe_transactions
from rota.coordinator.api.offset_fetch import offset_fetch
from rota.coordinator.api.repeats import REPEATS_MAX, Repeats
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from rota.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from rota.protocol.messages.describe_transactions import DescribeTransactionsRequest
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

MANY = REPEATS_MAX + 3  # two more than the first one and its repetitions
TOPIC = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)
REQUESTS: dict[str, tuple[Callable[..., Any], Any, int, Callable[[Any], Any]]] = {
    "DescribeProducers": (
        describe_producers,
        DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,) * MANY),)),
        0,
        lambda response: response.topics[0].partitions,
    ),
    "DescribeTransactions": (
        describe_transactions,
        DescribeTransactionsRequest(transactional_ids=("tx",) * MANY),
        0,
        lambda response: response.transaction_states,
    ),
    "DescribeGroups": (describe_groups, DescribeGroupsRequest(groups=("g",) * MANY), 5, lambda found: found.groups),
    "ConsumerGroupDescribe": (
        consumer_group_describe,
        ConsumerGroupDescribeRequest(group_ids=("g",) * MANY),
        0,
        lambda response: response.groups,
    ),
    "OffsetFetch": (
        offset_fetch,
        OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),) * MANY),
        8,
        lambda response: response.groups,
    ),
    "DescribeConfigs": (
        describe_configs,
        DescribeConfigsRequest(resources=(TOPIC,) * MANY),
        4,
        lambda response: response.results,
    ),
}


@pytest.mark.parametrize("api", REQUESTS)
def test_w5_a_name_that_is_repeated_is_described_a_bounded_number_of_times(api: str) -> None:
    serve, request, version, described = REQUESTS[api]
    world = TransactionWorld()
    world.began()
    codes = [each.error_code for each in described(world.send_request(serve, request, version))]
    assert codes[-2:] == [ErrorCode.INVALID_REQUEST] * 2
    assert set(codes[:-2]) == {codes[0]} != {ErrorCode.INVALID_REQUEST}


def test_other_names_are_described() -> None:
    repeats = Repeats()
    assert not any(repeats.is_refused(name) for name in range(10 * REPEATS_MAX))
    assert not any(repeats.is_refused(name) for name in range(REPEATS_MAX))
    assert repeats.is_refused(0)
    assert not repeats.is_refused("another")
