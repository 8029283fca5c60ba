from __future__ import annotations

from rota.coordinator.api import authorized


def test_the_sets_are_those_that_kafka_answers_without_an_authorizer() -> None:
    """3576 and 8096 are what Apache Kafka 4.3 sends; operation n is bit n."""
    assert authorized.TOPIC == 3576
    assert authorized.CLUSTER == 8096
    assert authorized.NOT_REQUESTED == -2147483648
    assert authorized.bits(authorized.READ, authorized.WRITE) == 0b11000
