from rota.client.network.targets import AnyNode, Controller, Coordinator, Leader, Node
from rota.client.types import TopicPartition


def test_targets_are_values() -> None:
    assert {AnyNode(), AnyNode(), Controller(), Controller()} == {AnyNode(), Controller()}
    assert Node(3) == Node(3) != Node(4)
    assert Coordinator("a") != Coordinator("b")
    assert Leader(TopicPartition("t", 1)) == Leader(TopicPartition("t", 1))
