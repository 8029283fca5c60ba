"""What Spark asks of the sink on the driver."""

from __future__ import annotations

import pytest
from tests.interop.kit import unique
from tests.unit.spark_connector.conftest import create
from tests.unit.spark_connector.two_phase.world import World, expected

from rota.spark_connector.sink import TaskResult
from rota.spark_connector.two_phase.micro_batch import prepared_tasks
from rota.spark_connector.two_phase.task_write import PreparedTask


@pytest.fixture
def world(bootstrap: str) -> World:
    return World(bootstrap, create(bootstrap, unique("sink")))


def test_messages_of_failed_tasks_are_none(world: World) -> None:
    task = world.task(0, 0, "run")
    assert prepared_tasks([None, task, TaskResult(1)]) == ([task], [task.transaction])
    world.abort(0, [None, task])
    world.abort(0, [None])
    assert world.visible() == []


def test_a_micro_batch_without_records_needs_no_decision(world: World) -> None:
    empty = PreparedTask("q", 0, None)
    world.commit(0, [])
    world.commit(0, [empty, empty])
    world.commit(1, world.tasks(1))
    assert world.visible() == expected(1)
    assert world.decision() is not None
