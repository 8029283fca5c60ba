from __future__ import annotations

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.brokers import BrokerRegistration, swim_addresses

INSIDE, OUTSIDE = Endpoint("INSIDE", "10.0.0.1", 9093), Endpoint("OUTSIDE", "example.org", 9092)


def test_a_listener_is_found_by_its_name_and_replaced_by_the_first_one() -> None:
    broker = BrokerRegistration(broker_id=1, endpoints=(INSIDE, OUTSIDE))
    assert broker.endpoint("OUTSIDE") == OUTSIDE
    assert broker.endpoint("PLAINTEXT") == INSIDE
    assert BrokerRegistration(broker_id=1).endpoint("PLAINTEXT") is None


def test_fd17_an_address_without_a_port_that_may_be_is_none() -> None:
    wrong = ("", ":9", "h", "h:", "h:0", "h:65536", "h:-1", f"h:{'9' * 5000}", "h:٩")
    texts = ("h:65535", "::1:9", *wrong)
    brokers = {index: BrokerRegistration(broker_id=index, epoch=7, swim=swim) for index, swim in enumerate(texts)}
    assert dict(swim_addresses(brokers)) == {0: (7, ("h", 65535)), 1: (7, ("::1", 9))}
