from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.replica.durability import Durability
from rota.coordinator.replica.partition import Partition


class Gate(Executor):
    """Runs a flush when the test says so. `refuse` makes the medium fail."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.flushes = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def open(self, refuse: bool = False) -> None:
        future, work = self.waiting.pop(0)
        self.flushes += 1
        if refuse:
            future.set_exception(StorageFailed("the disk is gone"))
        else:
            future.set_result(work())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def partition(index: int = 0, flush_messages: int | None = 1) -> Partition:
    made = Partition("t", bytes(16), index, 0, MemoryLog(LogConfig(flush_messages=flush_messages)))
    made.append(batch(b"a"), NOW_MS)
    return made


def test_without_flush_messages_the_call_comes_at_once() -> None:
    calls: list[str] = []
    Durability().when_durable(partition(flush_messages=None), lambda: calls.append("done"))
    assert calls == ["done"]


async def test_the_call_comes_after_the_flush() -> None:
    gate, calls = Gate(), list[str]()
    Durability(gate).when_durable(partition(), lambda: calls.append("done"))
    await turns()
    assert (calls, len(gate.waiting)) == ([], 1)
    gate.open()
    await turns()
    assert calls == ["done"]


async def test_who_need_not_wait_any_more_does_not_overtake_who_waits() -> None:
    gate, calls, one = Gate(), list[str](), partition()
    durability = Durability(gate)
    durability.when_durable(one, lambda: calls.append("first"))
    await turns()
    one.log.config = LogConfig()  # flushing was left to the system meanwhile
    durability.when_durable(one, lambda: calls.append("second"))
    gate.open()
    await turns()
    gate.open()
    await turns()
    durability.when_durable(one, lambda: calls.append("third"))
    assert calls == ["first", "second", "third"]
    assert gate.waiting == []


async def test_appends_of_one_turn_share_a_flush_and_later_ones_wait_for_the_next() -> None:
    gate, calls, one = Gate(), list[int](), partition()
    durability = Durability(gate)
    for number in (1, 2, 3):
        durability.when_durable(one, lambda number=number: calls.append(number))  # type: ignore[misc]
    await turns()
    durability.when_durable(one, lambda: calls.append(4))
    await turns()
    assert len(gate.waiting) == 1
    gate.open()
    await turns()
    assert calls == [1, 2, 3]
    gate.open()
    await turns()
    assert (calls, gate.flushes) == ([1, 2, 3, 4], 2)


async def test_a_failed_flush_takes_one_partition_offline_and_answers_nobody_with_success() -> None:
    gate, calls = Gate(), list[str]()
    durability, bad, good = Durability(gate), partition(0), partition(1)
    durability.when_durable(bad, lambda: calls.append("bad"), lambda error: calls.append(str(error)))
    durability.when_durable(bad, lambda: calls.append("bad too"))
    durability.when_durable(good, lambda: calls.append("good"))
    await turns()
    gate.open(refuse=True)
    await turns()
    gate.open()
    await turns()
    assert calls == ["the disk is gone", "good"]
    assert (bad.offline, good.offline) == ("the disk is gone", None)


async def test_a_partition_that_went_offline_before_its_flush_fails() -> None:
    gate, calls, one = Gate(), list[str](), partition()
    Durability(gate).when_durable(one, lambda: calls.append("done"), lambda error: calls.append(str(error)))
    one.fail("pulled out")
    await turns()
    assert calls == ["t-0 is offline: pulled out"]
    with pytest.raises(StorageFailed):
        Durability(gate).when_durable(one, lambda: None)


async def test_a_mistake_in_one_call_harms_no_other() -> None:
    gate, calls, one = Gate(), list[str](), partition()
    durability, told = Durability(gate), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
    mistake = ZeroDivisionError()

    def wrong() -> None:
        raise mistake

    durability.when_durable(one, wrong)
    durability.when_durable(one, lambda: calls.append("done"))
    await turns()
    gate.open()
    await turns()
    assert (calls, told) == (["done"], [mistake])


async def test_drained_waits_for_a_real_thread() -> None:
    executor, calls = ThreadPoolExecutor(1), list[str]()
    durability = Durability(executor)
    durability.when_durable(partition(), lambda: calls.append("done"))
    await durability.drained()
    assert calls == ["done"]
    durability.close()
    with pytest.raises(RuntimeError):
        executor.submit(lambda: None)
