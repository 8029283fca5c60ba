"""Every public call of Producer and Admin, and every task inside them, is cancelled: before its first step and at each
step after it. Nothing hangs, nothing is left behind, and the client goes on working."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from tests.unit.client.network.scripted import Scripted, eventually
from tests.unit.client.producer.leader import Leader, settings
from tests.unit.client.producer.transactional import TransactionalLeader

from rota.client.admin.admin import Admin
from rota.client.admin.configs import ConfigResource
from rota.client.admin.topics import NewTopic
from rota.client.config import AdminConfig
from rota.client.errors import IllegalUse, KafkaError
from rota.client.producer.producer import Producer
from rota.client.types import TopicPartition

STEPS_MAX = 200
PATIENCE_S = 20
P = TopicPartition("t", 0)


async def cancelled_at(work: Coroutine[Any, Any, Any], step: int) -> bool:
    """Cancel `work` after `step` turns of the loop, 0: before its first step. True when it ended before that."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    for _ in range(step):
        await asyncio.sleep(0)
        if task.done():
            break
    finished = task.done()
    task.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait({task})
    if not task.cancelled():
        assert task.exception() is None or isinstance(task.exception(), KafkaError), task.exception()
    return finished


def is_ours(coro: Any) -> bool:
    file = coro.cr_code.co_filename
    return "/client/" in file and "/tests/" not in file


def mine() -> set[str]:
    """The names of the coroutines of this client that run as tasks."""
    running = (task.get_coro() for task in asyncio.all_tasks() if not task.done())
    return {coro.__qualname__ for coro in running if is_ours(coro)}


PRODUCER_CALLS: dict[str, Callable[[Producer], Any]] = {
    "start": lambda producer: producer.start(),
    "send": lambda producer: producer.send("other", b"1"),
    "send_rows": lambda producer: producer.send_rows("other", [b"1", b"2"]),
    "send_and_wait": lambda producer: producer.send_and_wait("other", b"1"),
    "flush": lambda producer: producer.flush(),
    "partitions_for": lambda producer: producer.partitions_for("another"),
    "close": lambda producer: producer.close(),
}
TRANSACTION_CALLS: dict[str, Callable[[Producer], Any]] = {  # those of a transactional producer
    "begin_transaction": lambda producer: producer.begin_transaction(),
    "send_offsets": lambda producer: producer.send_offsets({P: 5}, "g"),
    "commit_transaction": lambda producer: producer.commit_transaction(),
    "prepare_transaction": lambda producer: producer.prepare_transaction(),
    "abort_transaction": lambda producer: producer.abort_transaction(),
}
ADMIN_CALLS: dict[str, Callable[[Admin], Any]] = {
    "start": lambda admin: admin.start(),
    "close": lambda admin: admin.close(),
    "create_topics": lambda admin: admin.create_topics([NewTopic("t")]),
    "delete_topics": lambda admin: admin.delete_topics(["t"]),
    "create_partitions": lambda admin: admin.create_partitions({"t": 3}),
    "describe_topics": lambda admin: admin.describe_topics(["t"]),
    "list_topics": lambda admin: admin.list_topics(),
    "describe_configs": lambda admin: admin.describe_configs([ConfigResource.topic("t")]),
    "alter_configs": lambda admin: admin.alter_configs({ConfigResource.topic("t"): {"retention.ms": 1}}),
    "delete_records": lambda admin: admin.delete_records({P: 0}),
    "list_offsets": lambda admin: admin.list_offsets({P: -1}),
    "elect_leaders": lambda admin: admin.elect_leaders([P]),
    "list_groups": lambda admin: admin.list_groups(),
    "describe_groups": lambda admin: admin.describe_groups(["g"]),
    "delete_groups": lambda admin: admin.delete_groups(["g"]),
    "remove_members": lambda admin: admin.remove_members("g", members=["m"]),
    "list_group_offsets": lambda admin: admin.list_group_offsets(["g"]),
    "alter_group_offsets": lambda admin: admin.alter_group_offsets("g", {P: 1}),
    "delete_group_offsets": lambda admin: admin.delete_group_offsets("g", [P]),
    "reset_group_offsets": lambda admin: admin.reset_group_offsets("g", [P], to="latest"),
    "group_lag": lambda admin: admin.group_lag("g"),
    "describe_cluster": lambda admin: admin.describe_cluster(),
}


@pytest.mark.parametrize(("cls", "calls"), [(Producer, PRODUCER_CALLS | TRANSACTION_CALLS), (Admin, ADMIN_CALLS)])
def test_every_public_call_is_cancelled_here(cls: type, calls: dict[str, Any]) -> None:
    public = {name for name, _ in inspect.getmembers(cls, inspect.iscoroutinefunction) if not name.startswith("_")}
    assert public == set(calls)


@pytest.mark.parametrize("name", PRODUCER_CALLS)
async def test_a_call_of_the_producer_is_cancelled_at_each_step(name: str) -> None:
    for step in range(STEPS_MAX):
        async with Leader(partitions=1) as leader:
            producer = Producer(settings(leader))
            if name != "start":
                await producer.start()
                await producer.send("t", b"0")
            finished = await cancelled_at(PRODUCER_CALLS[name](producer), step)
            if name not in ("start", "close"):
                async with asyncio.timeout(PATIENCE_S):
                    assert (await producer.send_and_wait("t", b"1")).offset >= 1
            await producer.close()
            assert await eventually(lambda: not mine() and not leader._writers)
        if finished:
            return
    pytest.fail(f"{name} did not end within {STEPS_MAX} steps")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", [*TRANSACTION_CALLS, "start", "send", "close"])
async def test_a_call_of_a_transactional_producer_is_cancelled_at_each_step(name: str, version: int) -> None:
    """The first transaction is committed or aborted as a whole, once; the next one is committed."""
    call = (PRODUCER_CALLS | TRANSACTION_CALLS)[name]
    for step in range(STEPS_MAX):
        async with TransactionalLeader(version=version, partitions=1) as leader:
            producer = Producer(settings(leader, transactional_id="id"))
            if name != "start":
                await producer.start()
            if name not in ("start", "begin_transaction"):
                await producer.begin_transaction()
                await producer.send("t", b"0")
            finished = await cancelled_at(call(producer), step)
            if name not in ("start", "close", "prepare_transaction"):  # a prepared producer can only be closed
                async with asyncio.timeout(PATIENCE_S):
                    await end_any_transaction(producer)
                    async with producer.transaction():
                        await producer.send("t", b"1")
                assert leader.committed[-1] == [b"1"]
                assert sum(values.count(b"0") for values in leader.committed + leader.aborted) <= 1
                assert leader.offsets in ({}, {P: 5}) if name == "send_offsets" else not leader.offsets
            await producer.close()
            assert await eventually(lambda: not mine() and not leader._writers)
        if finished:
            return
    pytest.fail(f"{name} did not end within {STEPS_MAX} steps")


async def end_any_transaction(producer: Producer) -> None:
    """As a program does that does not know how far a cancelled call came."""
    try:
        await producer.abort_transaction()
    except IllegalUse:  # there is none, or the commit was sent
        with suppress(IllegalUse):
            await producer.commit_transaction()


@pytest.mark.parametrize("name", ADMIN_CALLS)
async def test_a_call_of_the_admin_is_cancelled_at_each_step(name: str) -> None:
    """The broker of this test leaves what it does not know unanswered: such a call waits until it is cancelled."""
    for step in range(STEPS_MAX):
        async with Silent() as broker:
            admin = Admin(AdminConfig(bootstrap_servers=broker.address, retry_backoff_ms=1, retry_backoff_max_ms=2))
            if name != "start":
                await admin.start()
            requests = len(broker.requests)
            finished = await cancelled_at(ADMIN_CALLS[name](admin), step)
            if name not in ("start", "close"):
                async with asyncio.timeout(PATIENCE_S):
                    await admin.list_topics()
            await admin.close()
            assert await eventually(lambda: not mine() and not broker._writers)
        if finished or len(broker.requests) > requests + 3 or step > 40:
            return


class Silent(Scripted):
    """A broker that never answers a request it has no answer for."""

    def __init__(self) -> None:
        super().__init__()
        self._answers = Answers(self._answers)


class Answers(dict[type, Callable[[Any], Any]]):
    def __missing__(self, key: type) -> Callable[[Any], Any]:
        return lambda _: None


# ---- tasks inside

INTERNAL = {
    "MetadataUpdater.run",
    "BrokerConnection._connect",
    "Sender._connect",
    "Sender._request_producer_id",
    "Sender._send",
}


class TaskFactory:
    """Records the coroutines that become tasks; cancels the first `victim` after `step` turns of the loop."""

    def __init__(self, victim: str = "", step: int = 0) -> None:
        self.victim, self.step = victim, step
        self.seen: set[str] = set()
        self.hits = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=loop, **more)
        name = coro.__qualname__
        if is_ours(coro):
            self.seen.add(name)
        if name == self.victim and not self.hits:
            self.hits += 1
            self._cancel_after(loop, task, self.step)
        return task

    def _cancel_after(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], left: int) -> None:
        if left:
            loop.call_soon(self._cancel_after, loop, task, left - 1)
        else:
            task.cancel()


async def test_these_are_the_tasks_inside() -> None:
    factory = TaskFactory()
    asyncio.get_running_loop().set_task_factory(factory)  # type: ignore[arg-type]
    async with Leader(partitions=1) as leader, Producer(settings(leader)) as producer:
        await producer.send_and_wait("t", b"1")
    assert {name for name in factory.seen if not name.endswith(("_end", "_closed"))} - INTERNAL <= {
        "BrokerConnection.close"
    }
    assert factory.seen >= INTERNAL


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("victim", sorted(INTERNAL))
async def test_cancelling_an_internal_task_does_not_stop_the_producer(victim: str, step: int) -> None:
    factory = TaskFactory(victim, step)
    asyncio.get_running_loop().set_task_factory(factory)  # type: ignore[arg-type]
    async with Leader(partitions=1) as leader:
        async with asyncio.timeout(PATIENCE_S), Producer(settings(leader, metadata_max_age_ms=5)) as producer:
            for _ in range(3):
                await producer.send_and_wait("t", b"1")
            await producer.partitions_for("other")
        assert factory.hits == 1
        assert await eventually(lambda: not mine() and not leader._writers)
