"""Assignors that remember nothing."""

from __future__ import annotations

from rota.client.group.assignors.base import RebalanceProtocol
from rota.client.group.assignors.stateless import StatelessAssignor
from rota.client.types import TopicPartition


def test_it_is_eager() -> None:
    assert StatelessAssignor().supports == {RebalanceProtocol.EAGER}


def test_an_assignment_leaves_no_trace() -> None:
    assignor = StatelessAssignor()
    assignor.on_assignment([TopicPartition("t", 0)], b"data", 7)
    assert assignor.user_data(["t"]) is None
