"""The two phases on a real broker, interrupted at each step."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from tests.interop.kit import unique
from tests.soak import SOAK
from tests.unit.spark_connector.conftest import Write, create
from tests.unit.spark_connector.two_phase.world import World, expected

from rota.client.errors import KafkaError, ProducerFenced
from rota.client.producer.prepared import PreparedTransaction
from rota.spark_connector.two_phase import committer
from rota.spark_connector.two_phase.errors import (
    DecidedTransactionLost,
    DecisionLost,
    OldMicroBatch,
    PreparedTransactionLost,
)
from rota.spark_connector.two_phase.task_write import PreparedTask
from rota.testing import running_broker

# what the driver does at the brokers, in its process
REQUESTS = (
    (committer.DecisionTopic, "last"),
    (committer, "is_open"),
    (committer.DecisionTopic, "write"),
    (committer, "commit_prepared"),
    (committer, "open_ids"),
    (committer, "open_transaction"),
    (committer, "abort_prepared"),
)
PAUSES = 26  # those of a driver that finds two transactions of another
STEPS = 16  # two for each of: last, is_open and commit_prepared of two tasks, open_ids, two times write
# After a request the brokers are as before the next one. An even step goes on without `abort`, an odd one with it: the
# gate has each state once, in turn with it and without it
IN_THE_GATE = (0, 2, 3, 6, 7, 10, 11, 14, 15)


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def world(bootstrap: str) -> World:
    return World(bootstrap, create(bootstrap, unique("sink")))


@pytest.fixture
def at_step(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`at_step(step, act)`: `act` is awaited before that request or, with a number that is odd, after it."""
    count = 0

    def arm(step: int, act: Callable[[], Awaitable[None]]) -> None:
        nonlocal count
        count = 0

        def wrap(inner: Any) -> Any:
            async def call(*args: Any, **more: Any) -> Any:
                nonlocal count
                at, count = count, count + 2
                if at == step:
                    await act()
                result = await inner(*args, **more)
                if at + 1 == step:
                    await act()
                return result

            return call

        for owner, name in REQUESTS:
            monkeypatch.setattr(owner, name, wrap(getattr(owner, name)))

    return arm


@pytest.fixture
def killed(at_step: Any) -> Any:
    """`killed(step)`: the process ends there."""

    async def die() -> None:
        raise Killed

    return lambda step: at_step(step, die)


@pytest.mark.parametrize("step", range(STEPS) if SOAK else IN_THE_GATE)
@pytest.mark.parametrize("is_aborted", [False, True] if SOAK else [False])
def test_sk4_a_driver_that_is_killed_at_any_step_commits_each_record_once(
    world: World, killed: Any, monkeypatch: pytest.MonkeyPatch, step: int, is_aborted: bool
) -> None:
    world.commit(0, world.tasks(0))
    tasks = world.tasks(1)
    killed(step)
    with pytest.raises(Killed):
        world.commit(1, tasks)
    monkeypatch.undo()
    if is_aborted or step % 2:  # Spark calls it when the process for the commit was killed, but not the driver
        world.abort(1, tasks)
    assert set(world.visible()) <= set(expected(0, 1))
    world.commit(1, world.tasks(1, "next run"))
    assert world.visible() == expected(0, 1)
    world.commit(2, world.tasks(2, "next run"))
    assert world.visible() == expected(0, 1, 2)
    assert world.decision() is not None
    assert world.decision().is_complete  # type: ignore[union-attr]


@pytest.mark.parametrize("step", range(0, PAUSES, 1 if SOAK else 3))
@pytest.mark.parametrize("how", ["commit", "commit two", "abort", "decide", "decide two"] if SOAK else ["decide two"])
def test_sk4_a_driver_that_is_paused_at_any_step_while_another_runs_changes_nothing(
    world: World, at_step: Any, monkeypatch: pytest.MonkeyPatch, step: int, how: str
) -> None:
    """The other one is killed where it has decided and no more."""
    world.commit(0, world.tasks(0))
    tasks, theirs = world.tasks(1), world.tasks(1, "other")
    is_paused = False

    async def pause() -> None:
        nonlocal is_paused
        is_paused = True
        monkeypatch.undo()
        with contextlib.suppress(PreparedTransactionLost):
            if how == "decide":
                await decide(world, 1, transactions_of(theirs))
            else:
                await asyncio.to_thread(world.abort if how == "abort" else world.commit, 1, theirs)
        if how.endswith("two"):
            following = await asyncio.to_thread(world.tasks, 2, "other")
            if how == "commit two":
                await asyncio.to_thread(world.commit, 2, following)
            else:
                await decide(world, 2, transactions_of(following))

    at_step(step, pause)
    with contextlib.suppress(KafkaError, PreparedTransactionLost, OldMicroBatch):
        world.commit(1, tasks)
    assert is_paused
    for batch in (1, 2, 3):
        with contextlib.suppress(OldMicroBatch):
            world.commit(batch, world.tasks(batch, "last"))
    assert world.visible() == expected(0, 1, 2, 3)


def test_a_decision_that_is_not_complete_is_completed_before_the_next_one(
    world: World, killed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(STEPS - 2)  # before the last step
    with pytest.raises(Killed):
        world.commit(0, world.tasks(0))
    monkeypatch.undo()
    world.commit(1, world.tasks(1, "next run"))
    assert world.visible() == expected(0, 1)


def test_the_steps_are_all(world: World, killed: Any) -> None:
    killed(STEPS)
    world.commit(0, world.tasks(0))
    assert world.visible() == expected(0)


def test_sk3_nothing_is_visible_before_the_decision_and_a_failed_job_leaves_nothing(world: World) -> None:
    tasks = world.tasks(0)
    assert world.visible() == []
    world.abort(0, [tasks[0], None])  # the other attempt has prepared, but Spark has no message of it
    world.commit(0, world.tasks(0, "next run"))
    assert world.visible() == expected(0)
    assert world.written() == sorted(expected(0) * 2)


@pytest.mark.parametrize("at_once", [1, committer.DISCARDED_MAX])
def test_sk3_leftovers_of_other_attempts_are_aborted_with_the_micro_batch(
    world: World, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(committer, "DISCARDED_MAX", at_once)
    world.task(0, 0, "run", attempt=1)  # speculation
    world.task(0, 1, "killed run")
    world.commit(0, world.tasks(0))
    assert world.visible() == expected(0)  # and so no reader waits for the end of another transaction


def test_sk3_a_stage_that_spark_runs_again_does_not_abort_what_its_first_run_has_prepared(world: World) -> None:
    """Spark takes the result of the first, and the second, with the same number of the attempt, has begun before."""
    first = world.tasks(0)
    again = world.task(0, 0, "run", task=7)
    assert again.transaction is not None
    world.commit(0, first)
    assert world.visible() == expected(0)
    world.commit(1, world.tasks(1))
    assert world.visible() == expected(0, 1)


def test_sk4_a_micro_batch_that_another_driver_has_decided_is_not_written_again(world: World) -> None:
    late, first = world.tasks(0, "late"), world.tasks(0, "first")
    world.commit(0, first)
    assert [task.is_decided for task in world.tasks(0, "third")] == [True, True]
    world.commit(0, late)
    world.abort(0, late)
    assert world.visible() == expected(0)


async def test_sk4_a_decision_is_written_by_the_last_that_has_read(world: World) -> None:
    arguments = (world.settings, world.topic, world.transactions.decision_topic, world.query)
    async with committer.Committer(*arguments) as first, committer.Committer(*arguments) as second:
        with pytest.raises(ProducerFenced):
            await first._decisions.write(committer.Decision(0, ()))
        await second._decisions.write(committer.Decision(0, ()))


def test_sk5_a_transaction_that_ended_before_the_decision_undoes_the_micro_batch() -> None:
    with running_broker() as broker:
        world = World(broker.bootstrap_servers, create(broker.bootstrap_servers, "sink"))
        tasks = world.tasks(0)
        broker.advance(minutes=16)
        with pytest.raises(PreparedTransactionLost, match=r"none of its records is visible: .*sink-q-run-0-0, sink-q"):
            world.commit(0, tasks)
        world.abort(0, tasks)
        world.commit(0, world.tasks(0, "next run"))
        assert world.visible() == expected(0)


def test_sk5_a_decided_transaction_that_the_broker_has_aborted_is_an_error_at_each_attempt(
    killed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_broker() as broker:
        world = World(broker.bootstrap_servers, create(broker.bootstrap_servers, "sink"))
        tasks = world.tasks(0)
        killed(10)  # before the second of the two commits
        with pytest.raises(Killed):
            world.commit(0, tasks)
        monkeypatch.undo()
        broker.advance(minutes=16)
        for run in ("second", "third"):
            with pytest.raises(DecidedTransactionLost, match=r"1 of its transactions are visible.*sink-q-run-\d-0"):
                world.commit(0, world.tasks(0, run))
        assert len(world.visible()) == 1


def test_sk5_a_decision_that_a_task_has_found_and_that_is_gone_is_an_error(world: World, write: Write) -> None:
    """As when its record is deleted, to write a micro-batch again, while a supervisor starts the query."""
    world.commit(0, world.tasks(0))
    found = [world.task(0, 0, "second")]
    write(world.transactions.decision_topic, 0, [(b"q", None)])
    for messages in (found, [*found, world.task(0, 1, "second")]):
        with pytest.raises(DecisionLost, match="repeats the micro-batch"):
            world.commit(0, messages)
    assert world.decision() is None
    world.commit(0, world.tasks(0, "third"))
    assert world.visible() == sorted(expected(0) * 2)


def test_an_older_checkpoint_is_refused(world: World) -> None:
    old = world.tasks(0)
    world.commit(1, world.tasks(1, "other"))
    with pytest.raises(OldMicroBatch, match=r"micro-batch 0 .* micro-batch 1"):
        world.commit(0, old)
    with pytest.raises(OldMicroBatch):
        world.task(0, 0, "third")


async def test_sk4_a_driver_that_is_fenced_aborts_nothing_that_another_decides(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other opens the decision topic and decides after the first has listed what is open."""
    prepared = await prepared_by(world, "second")
    async with opened(world) as first, contextlib.AsyncExitStack() as stack:
        second = opened(world)

        async def listed(cluster: Any, prefix: str) -> list[str]:
            monkeypatch.undo()
            found = await committer.open_ids(cluster, prefix)
            await stack.enter_async_context(second)
            await second._decisions.write(committer.Decision(1, tuple(prepared)))
            return found

        monkeypatch.setattr(committer, "open_ids", listed)
        await first.abort(0, [])
        await second.commit(1, prepared)
    assert await asyncio.to_thread(world.visible) == expected(1)


async def test_sk4_what_another_driver_is_aborting_is_not_decided(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = await prepared_by(world, "second")
    async with opened(world) as first, contextlib.AsyncExitStack() as stack:
        second = opened(world)

        async def aborted(*arguments: Any) -> None:
            monkeypatch.undo()
            await stack.enter_async_context(second)
            with pytest.raises(PreparedTransactionLost, match="by another driver"):
                await second.commit(1, prepared)
            await committer.abort_prepared(*arguments)

        monkeypatch.setattr(committer, "abort_prepared", aborted)
        await first.abort(0, [])
    await asyncio.to_thread(lambda: world.commit(1, world.tasks(1, "third")))
    assert await asyncio.to_thread(world.visible) == expected(1)


def opened(world: World) -> committer.Committer:
    return committer.Committer(world.settings, world.topic, world.transactions.decision_topic, world.query)


async def decide(world: World, batch: int, prepared: list[PreparedTransaction]) -> None:
    async with opened(world) as driver:
        last = await driver._decisions.last()
        if last is None or last.batch < batch:
            await driver._check(batch, prepared, last)
            await driver._decisions.write(committer.Decision(batch, tuple(prepared)))


async def prepared_by(world: World, run: str) -> list[PreparedTransaction]:
    return transactions_of(await asyncio.to_thread(world.tasks, 1, run))


def transactions_of(tasks: Iterable[PreparedTask]) -> list[PreparedTransaction]:
    return [task.transaction for task in tasks if task.transaction is not None]
