from __future__ import annotations

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.group import GROUP, broker_name_of, check_group
from rota.coordinator.config.other_properties import others


def test_defaults_are_those_of_the_broker() -> None:
    for name, definition in GROUP.items():
        broker_name = broker_name_of(name)
        if broker_name is not None:
            assert (USED.get(broker_name) or others()[broker_name]).default == definition.default


@pytest.mark.parametrize(
    "reset", ["earliest", "latest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S", "by_duration:P2D"]
)
def test_resets(reset: str) -> None:
    check_group({"share.auto.offset.reset": reset}, BrokerConfig())


@pytest.mark.parametrize("reset", ["", "Latest", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:P1DT"])
def test_no_resets(reset: str) -> None:
    with pytest.raises(ConfigRefused):
        check_group({"share.auto.offset.reset": reset}, BrokerConfig())


def test_the_limits_are_those_of_the_broker() -> None:
    check_group(
        {"consumer.session.timeout.ms": "1000"},
        BrokerConfig(
            {
                "group.consumer.min.session.timeout.ms": "500",
                "group.consumer.min.heartbeat.interval.ms": "200",
                "group.consumer.heartbeat.interval.ms": "200",
            }
        ),
    )
    with pytest.raises(ConfigRefused, match=r"greater than consumer\.heartbeat\.interval\.ms"):
        check_group(
            {"consumer.session.timeout.ms": "5000"}, BrokerConfig({"group.consumer.min.session.timeout.ms": "1"})
        )
