from __future__ import annotations

from rota.coordinator.security.operations import ALL_OPERATIONS, NOT_REQUESTED, Operation, ResourceType, bits


def test_the_sets_are_those_that_kafka_answers_without_an_authorizer() -> None:
    """Apache Kafka 4.3 sends 3576 for topics, 3400 for groups and 8096 for the cluster; operation n is bit n."""
    assert ALL_OPERATIONS == {ResourceType.TOPIC: 3576, ResourceType.GROUP: 3400, ResourceType.CLUSTER: 8096}
    assert NOT_REQUESTED == -2147483648
    assert bits([Operation.READ, Operation.WRITE]) == 0b11000
