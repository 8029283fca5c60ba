from __future__ import annotations

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.brokers import BrokerRegistration

INSIDE, OUTSIDE = Endpoint("INSIDE", "10.0.0.1", 9093), Endpoint("OUTSIDE", "example.org", 9092)


def test_a_listener_is_found_by_its_name_and_replaced_by_the_first_one() -> None:
    broker = BrokerRegistration(broker_id=1, endpoints=(INSIDE, OUTSIDE))
    assert broker.endpoint("OUTSIDE") == OUTSIDE
    assert broker.endpoint("PLAINTEXT") == INSIDE
    assert BrokerRegistration(broker_id=1).endpoint("PLAINTEXT") is None
