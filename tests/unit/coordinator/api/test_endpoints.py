from __future__ import annotations

from typing import Any, cast

from rota.coordinator.api.endpoints import BrokerAddress, address_of, controller_id, live_addresses
from rota.coordinator.api.node import Call
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.image import Image


class Node:
    """The two parts of a node that addresses come from."""

    def __init__(self) -> None:
        self.config = BrokerConfig({"node.id": "2", "broker.rack": "b"})
        self.topics = Image(2)
        inside, outside = Endpoint("INSIDE", "10.0.0.1", 1), Endpoint("OUTSIDE", "example.org", 2)
        self.topics.apply_brokers(
            {
                1: BrokerRegistration(broker_id=1, endpoints=(inside, outside), rack="a"),
                3: BrokerRegistration(broker_id=3),
            }
        )


def call(listener: str) -> Call:
    return Call(0, "", "/h", "reached", 9, listener=listener)


def test_other_brokers_have_the_address_of_the_listener_that_the_client_uses() -> None:
    node = cast(Any, Node())
    assert address_of(node, call("OUTSIDE"), 1) == BrokerAddress(1, "example.org", 2, "a")
    assert address_of(node, call("INSIDE"), 1) == BrokerAddress(1, "10.0.0.1", 1, "a")
    assert address_of(node, call("INSIDE"), 2) == BrokerAddress(2, "reached", 9, "b")
    assert address_of(node, call("INSIDE"), 3) is None
    assert address_of(node, call("INSIDE"), 4) is None


def test_this_broker_has_the_address_that_the_others_advertise() -> None:
    """Law EP1. Clients take a broker with another address for another one, and close their connection to the first."""
    node = cast(Any, Node())
    outside = Endpoint("OUTSIDE", "second.example", 3)
    node.topics.apply_brokers({2: BrokerRegistration(broker_id=2, endpoints=(outside,), rack="b")})
    assert address_of(node, call("OUTSIDE"), 2) == BrokerAddress(2, "second.example", 3, "b")


def test_this_broker_is_among_the_live_ones_before_it_is_registered() -> None:
    node = cast(Any, Node())
    assert [address.node_id for address in live_addresses(node, call("INSIDE"))] == [1, 2]


def test_without_a_controller_this_broker_is_named() -> None:
    node = cast(Any, Node())
    assert controller_id(node) == 2
    node.topics.apply_controller(1)
    assert controller_id(node) == 1
    node.topics.apply_controller(7)
    assert controller_id(node) == 2
