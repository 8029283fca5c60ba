"""One task: what it leaves at the broker."""

from __future__ import annotations

import pytest
from tests.interop.kit import unique
from tests.unit.spark_connector.conftest import create
from tests.unit.spark_connector.two_phase.world import World

from rota.client.producer.producer import Producer
from rota.spark_connector.two_phase.task_attempt import TaskAttempt
from rota.spark_connector.two_phase.task_write import write_prepared

ATTEMPT = TaskAttempt("q", "run", 0, 0, 0, 0)


@pytest.fixture
def world(bootstrap: str) -> World:
    return World(bootstrap, create(bootstrap, unique("sink")))


def test_its_records_are_written_and_not_visible(world: World) -> None:
    task = world.task(0, 0, "run")
    assert task.transaction is not None
    assert (task.query, task.records, task.is_decided) == ("q", 1, False)
    assert task.transaction.transactional_id == f"{world.topic}-q-run-0-0"
    assert (world.visible(), world.written()) == ([], ["0-0"])


async def test_without_rows_there_is_no_transaction(world: World) -> None:
    async def nothing(producer: Producer) -> int:
        return 0

    task = await write_prepared(ATTEMPT, world.settings, world.transactions, nothing)
    assert (task.records, task.transaction) == (0, None)


async def test_a_failure_aborts_its_transaction(world: World) -> None:
    async def fails(producer: Producer) -> int:
        await producer.send_and_wait(world.topic, b"x", partition=0)
        raise ValueError("the source")

    with pytest.raises(ValueError, match="the source"):
        await write_prepared(ATTEMPT, world.settings, world.transactions, fails)

    async def after(producer: Producer) -> int:
        assert producer._machine is not None
        return producer._machine.producer[1]

    task = await write_prepared(ATTEMPT, world.settings, world.transactions, after)
    assert task.records > 1, "the abort has bumped the epoch, and the next attempt once more"
