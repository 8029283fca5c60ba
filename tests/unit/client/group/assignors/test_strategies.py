"""From the setting to assignors, and to the rebalance protocol."""

from __future__ import annotations

import pytest

from rota.client.config import ConsumerConfig
from rota.client.errors import ConfigError
from rota.client.group.assignors import (
    CooperativeStickyAssignor,
    OriginalAssignor,
    RangeAssignor,
    RebalanceProtocol,
    StickyAssignor,
    for_name,
    rebalance_protocol,
    resolve,
)
from rota.client.group.assignors.strategies import STRATEGIES


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_name_creates_a_new_assignor(name: str) -> None:
    assert for_name(name).name == name
    assert for_name(name) is not for_name(name)


def test_the_names_of_java_s_classes_are_known() -> None:
    assert for_name("org.apache.kafka.clients.consumer.CooperativeStickyAssignor").name == "cooperative-sticky"


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(
        ConfigError, match=r"partition_assignment_strategy .* 'rnage'.* range, roundrobin, sticky, coop"
    ):
        resolve(["rnage"])


def test_names_instances_and_classes_keep_their_order() -> None:
    mine = OriginalAssignor()
    found = resolve(["sticky", mine, RangeAssignor])
    assert [assignor.name for assignor in found] == ["sticky", "original", "range"]
    assert found[1] is mine


def test_names_in_one_text() -> None:
    assert [assignor.name for assignor in resolve("range, sticky")] == ["range", "sticky"]


def test_the_default_of_a_consumer_is_eager() -> None:
    config = ConsumerConfig(bootstrap_servers="localhost:9092")
    assert rebalance_protocol(resolve(config.partition_assignment_strategy)) is RebalanceProtocol.EAGER


@pytest.mark.parametrize("wrong", [[], ["range", "range"], ["range", RangeAssignor()], [7], [object], [None], ""])
def test_invalid_strategies_are_refused(wrong: list[object]) -> None:
    with pytest.raises(ConfigError, match="partition_assignment_strategy"):
        resolve(wrong)


class Cooperative(CooperativeStickyAssignor):
    @property
    def supports(self) -> frozenset[RebalanceProtocol]:
        return frozenset({RebalanceProtocol.COOPERATIVE})


def test_the_highest_protocol_that_all_support() -> None:
    sticky, cooperative = StickyAssignor(), CooperativeStickyAssignor()
    assert rebalance_protocol([cooperative]) is RebalanceProtocol.COOPERATIVE
    assert rebalance_protocol([cooperative, Cooperative()]) is RebalanceProtocol.COOPERATIVE
    assert rebalance_protocol([cooperative, sticky]) is RebalanceProtocol.EAGER


def test_no_protocol_in_common_is_refused() -> None:
    with pytest.raises(ConfigError, match="sticky, cooperative-sticky have no rebalance protocol in common"):
        rebalance_protocol([StickyAssignor(), Cooperative()])
