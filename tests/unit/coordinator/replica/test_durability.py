from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica.durability import Durability
from rota.coordinator.replica.partition import Partition
from rota.protocol.errors import ErrorCode


class Gate(Executor):
    """Runs a flush when the test says so. `refusal` is what the medium raises."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.flushes = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def open(self, refusal: Exception | None = None) -> None:
        future, work = self.waiting.pop(0)
        self.flushes += 1
        if refusal is not None:
            future.set_exception(refusal)
        else:
            future.set_result(work())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def partition(durability: Durability, index: int = 0) -> Partition:
    """With a record that is not on the medium yet."""
    log = MemoryLog(LogConfig(flush_messages=1))
    target = Partition("t", bytes(16), index, 0, log, flush_worker=durability)
    target.append(batch(b"a"), NOW_MS)
    return target


def wait(target: Partition, offset: int, got: list[tuple[int, ErrorCode]]) -> None:
    target.when_committed(offset, NOW_MS + 1_000, lambda error: got.append((offset, error)))


async def test_an_append_is_flushed_and_then_committed() -> None:
    gate, got = Gate(), list[tuple[int, ErrorCode]]()
    wait(partition(Durability(gate)), 1, got)
    await turns()
    assert (got, len(gate.waiting)) == ([], 1)
    gate.open()
    await turns()
    assert got == [(1, ErrorCode.NONE)]


async def test_appends_of_one_turn_share_a_flush_and_later_ones_wait_for_the_next() -> None:
    gate, got = Gate(), list[tuple[int, ErrorCode]]()
    target = partition(Durability(gate))
    target.append(batch(b"b"), NOW_MS)
    wait(target, 1, got)
    wait(target, 2, got)
    await turns()
    flush_under_way = gate.waiting.pop()
    end = target.log.log_end_offset
    target.log.flush()  # what the flush does before it is done
    target.append(batch(b"c"), NOW_MS)
    wait(target, 3, got)
    flush_under_way[0].set_result(None)
    await turns()
    assert got == [(offset, ErrorCode.NONE) for offset in (1, 2)]
    assert (target.high_watermark, len(gate.waiting)) == (end, 1)
    gate.open()
    await turns()
    assert got[2:] == [(3, ErrorCode.NONE)]


async def test_a_failed_flush_takes_only_its_partition_offline_and_acknowledges_no_write() -> None:
    gate = Gate()
    bad_got, good_got = list[tuple[int, ErrorCode]](), list[tuple[int, ErrorCode]]()
    durability = Durability(gate)
    bad, good = partition(durability, 0), partition(durability, 1)
    wait(bad, 1, bad_got)
    wait(bad, 1, bad_got)
    wait(good, 1, good_got)
    await turns()
    gate.open(StorageFailed("the disk is gone"))
    await turns()
    gate.open()
    await turns()
    assert bad_got == [(1, ErrorCode.KAFKA_STORAGE_ERROR)] * 2
    assert good_got == [(1, ErrorCode.NONE)]
    assert (bad.offline, good.offline) == ("the disk is gone", None)


async def test_an_internal_error_in_a_flush_takes_only_its_partition_offline() -> None:
    gate, got = Gate(), list[tuple[int, ErrorCode]]()
    durability = Durability(gate)
    bad, good = partition(durability), partition(durability, 1)
    wait(good, 1, got)
    await turns()
    gate.open(RuntimeError("nobody wrote a test for this"))
    await turns()
    gate.open()
    await turns()
    assert bad.offline == "nobody wrote a test for this"
    assert got == [(1, ErrorCode.NONE)]


async def test_a_partition_that_went_offline_before_its_flush_is_left_alone() -> None:
    gate = Gate()
    partition(Durability(gate)).fail("pulled out")
    await turns()
    assert gate.waiting == []


async def test_a_partition_without_flush_messages_commits_at_once_and_can_be_flushed() -> None:
    gate = Gate()
    durability = Durability(gate)
    target = Partition("t", bytes(16), 0, 0, MemoryLog(LogConfig()), flush_worker=durability)
    target.append(batch(b"a"), NOW_MS)
    await turns()
    assert (target.high_watermark, gate.waiting) == (1, [])
    durability.flush_soon(target)
    await turns()
    gate.open()
    await turns()
    assert target.log.unflushed_messages == 0


async def test_drained_waits_for_a_real_thread() -> None:
    executor, got = ThreadPoolExecutor(1), list[tuple[int, ErrorCode]]()
    durability = Durability(executor)
    wait(partition(durability), 1, got)
    await durability.drained()
    assert got == [(1, ErrorCode.NONE)]
    durability.close()
    with pytest.raises(RuntimeError):
        executor.submit(lambda: None)


async def test_a_flush_of_a_log_that_was_replaced_meanwhile_fails_nothing() -> None:
    """Law A1. The partition was recovered while a flush of its old log still hung."""
    gate = Gate()
    target = partition(Durability(gate))
    await turns()
    target.fail("a write failed")
    target.reopen(MemoryLog(LogConfig()), PartitionState(index=0, leader=0, replicas=(0,), isr=(0,), leader_epoch=1), 0)
    gate.open(StorageFailed("the disk is gone"))
    await turns()
    assert target.offline is None
