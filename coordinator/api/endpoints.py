"""The addresses of brokers, as a client shall use them: those of the listener that its request came by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata.brokers import BrokerRegistration


class BrokerAddress(NamedTuple):
    """A live broker and its address."""

    node_id: int
    host: str
    port: int
    rack: str | None


def address_of(node: Node, call: Call, broker_id: int) -> BrokerAddress | None:
    """EP1. Return the address of a broker; None when it is not alive. This broker is always alive."""
    broker = node.topics.brokers.get(broker_id)
    address = None if broker is None else registered_address(broker, call)
    if address is None and broker_id == node.config.node_id:
        return BrokerAddress(broker_id, call.reached_host, call.reached_port, node.config.broker_rack)
    return address


def registered_address(broker: BrokerRegistration, call: Call) -> BrokerAddress | None:
    """Return the address in a registration; None if it has none."""
    endpoint = broker.endpoint(call.listener)
    return None if endpoint is None else BrokerAddress(broker.broker_id, endpoint.host, endpoint.port, broker.rack)


def live_addresses(node: Node, call: Call) -> Iterator[BrokerAddress]:
    """Iterate over the live brokers in the order of their ids."""
    for broker_id in sorted({*node.topics.brokers, node.config.node_id}):
        address = address_of(node, call, broker_id)
        if address is not None:
            yield address


def listed_addresses(node: Node, call: Call) -> list[BrokerAddress]:
    """Return the brokers that a client shall know: those that are alive, and for a moment those that have left.

    Each is listed once: this broker is alive also while it is not registered, as after it was fenced.
    """
    departed = {} if node.lost_brokers is None else node.lost_brokers.departed()
    left = (
        registered_address(broker, call) for broker_id, broker in departed.items() if broker_id != node.config.node_id
    )
    return sorted([*live_addresses(node, call), *(address for address in left if address is not None)])


def controller_id(node: Node) -> int:
    """Return the broker that is the controller; this one while there is none, which then answers for it."""
    controller = node.topics.controller_id
    return node.config.node_id if controller not in node.topics.brokers or controller is None else controller
