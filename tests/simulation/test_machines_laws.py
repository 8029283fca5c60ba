"""The checkers of the machines' worlds see what they are there for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.simulation.machines_broker import DATA
from tests.simulation.machines_laws import Laws
from tests.simulation.machines_world import MachinesWorld

from rota.coordinator.metadata.topic import PartitionState

MOVING = PartitionState(
    index=0, leader=2, replicas=(2, 3, 1), isr=(1, 2, 3), leader_epoch=1, adding=(3,), removing=(1,), version=1
)
MOVED = replace(MOVING, replicas=(2, 3), isr=(2, 3), leader_epoch=2, adding=(), removing=(), version=2)
WRONG = {
    "the replica that was to leave stays": replace(MOVED, replicas=(2, 3, 1), isr=(1, 2, 3)),
    "the replicas of before": replace(MOVED, replicas=(2, 1), isr=(1, 2)),
    "another order": replace(MOVED, replicas=(3, 2)),
    "the added replica lacks records": replace(MOVED, isr=(2,)),
    "another target, without a request": replace(MOVING, replicas=(2, 1, 3), adding=(3,), removing=(2,), version=2),
    "a smaller ISR than min.insync.replicas": replace(MOVED, replicas=(2, 3), isr=(3,), leader=3),
}


def laws_of_a_move() -> Laws:
    """A reassignment from (2, 1) to (2, 3) has begun."""
    world = MachinesWorld(1)
    world.min_isr = world.min_isr_min = 2
    laws = Laws(world)
    laws.state(DATA, replace(MOVING, replicas=(2, 1), isr=(1, 2), adding=(), removing=(), version=0))
    laws.reassignment_requested(replace(MOVING, version=0), (2, 3))
    laws.state(DATA, MOVING)
    return laws


@pytest.mark.parametrize("state", WRONG.values(), ids=WRONG.keys())
def test_a_reassignment_with_another_end_than_its_target_is_seen(state: PartitionState) -> None:
    laws = laws_of_a_move()
    with pytest.raises(AssertionError, match="RA1"):
        laws.state(DATA, state)


def test_its_target_is_its_end() -> None:
    laws = laws_of_a_move()
    laws.state(DATA, MOVED)
    assert laws.moves == 1


def test_a_cancelled_reassignment_with_other_replicas_than_before_is_seen() -> None:
    laws = laws_of_a_move()
    laws.reassignment_requested(replace(MOVED, replicas=(2, 1), version=1), None)
    with pytest.raises(AssertionError, match="RA2"):
        laws.reassignment_requested(replace(MOVED, version=1), None)


def test_a_reassignment_that_replaces_another_one_begins_with_the_replicas_of_before() -> None:
    laws = laws_of_a_move()
    laws.reassignment_requested(replace(MOVING, replicas=(3, 2, 1), adding=(3,), removing=(2, 1)), (3,))
    with pytest.raises(AssertionError, match="RA2"):  # broker 3 counts as one that has all records
        laws.reassignment_requested(replace(MOVING, replicas=(3, 2, 1), adding=(), removing=(2, 1)), (3,))
