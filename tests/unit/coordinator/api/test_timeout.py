"""Law T10: a store that is slow, or that hangs, keeps no admin request longer than its timeout."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World
from tests.unit.coordinator.replica.test_durability import turns

from rota.coordinator.api import timeout
from rota.coordinator.api.create_partitions import create_partitions
from rota.coordinator.api.create_topics import create_topics
from rota.coordinator.api.delete_topics import delete_topics
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import Op, OutcomeUnknown, StoreFailed
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.wire import UUID_ZERO

TIMEOUT_MS = 1_000


class SlowStore(EmbeddedStore):
    """While `is_free` is cleared, a commit waits. Then it raises `failure`, unless that is None."""

    def __init__(self) -> None:
        super().__init__()
        self.is_free = asyncio.Event()
        self.is_free.set()
        self.failure: Exception | None = None

    async def commit(self, ops: Sequence[Op]) -> None:
        if not self.is_free.is_set():
            await self.is_free.wait()
        if self.failure is not None:
            raise self.failure
        await super().commit(ops)


class SlowWorld(World):
    """A broker on such a store, with a topic `old` of one partition."""

    def __init__(self) -> None:
        self.store = SlowStore()
        super().__init__({"node.id": "0"}, store=self.store)
        self.topic("old")
        self.store.is_free.clear()

    def partition_count(self, name: str) -> int:
        topic = self.node.topics.get(name)
        return 0 if topic is None else len(topic.partitions)


def create(world: World, *names: str) -> Any:
    topics = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    return world.serve(create_topics, CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 7)


def grow(world: World, name: str) -> Any:
    topics = (CreatePartitionsTopic(name=name, count=3),)
    return world.serve(create_partitions, CreatePartitionsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 3)


def delete(world: World, name: str) -> Any:
    topics = (DeleteTopicState(name=name, topic_id=UUID_ZERO),)
    return world.serve(delete_topics, DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 6)


def codes(response: Any) -> list[ErrorCode]:
    results = getattr(response, "topics", None) or getattr(response, "results", None) or response.responses
    return [ErrorCode(result.error_code) for result in results]


REQUESTS: list[tuple[Callable[[World], Any], dict[str, int]]] = [
    (lambda world: create(world, "new"), {"old": 1, "new": 1}),
    (lambda world: grow(world, "old"), {"old": 3, "new": 0}),
    (lambda world: delete(world, "old"), {"old": 0, "new": 0}),
]


@pytest.mark.parametrize(("request_of", "counts"), REQUESTS)
async def test_a_slow_store_is_answered_for_at_the_timeout_and_the_change_is_made_later(
    request_of: Callable[[World], Any], counts: dict[str, int]
) -> None:
    world = SlowWorld()
    reply = request_of(world)
    await turns()
    world.after(TIMEOUT_MS - 1)
    await turns()
    assert not reply.answered
    world.after(1)
    await turns()
    assert codes(reply.value) == [ErrorCode.REQUEST_TIMED_OUT]
    world.store.is_free.set()
    await turns(20)
    assert {name: world.partition_count(name) for name in counts} == counts


@pytest.mark.parametrize(("request_of", "counts"), REQUESTS)
async def test_a_store_that_is_free_in_time_is_waited_for(
    request_of: Callable[[World], Any], counts: dict[str, int]
) -> None:
    world = SlowWorld()
    reply = request_of(world)
    await turns()
    world.store.is_free.set()
    await turns(20)
    assert codes(reply.value) == [ErrorCode.NONE]
    world.after(TIMEOUT_MS)  # no timer is left
    assert {name: world.partition_count(name) for name in counts} == counts


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (StoreFailed("no disk"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (OutcomeUnknown("no connection"), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
@pytest.mark.parametrize(("request_of", "counts"), REQUESTS)
async def test_a_store_that_fails_is_an_error_of_the_topic(
    request_of: Callable[[World], Any], counts: dict[str, int], failure: Exception, code: ErrorCode
) -> None:
    world = SlowWorld()
    world.store.failure = failure
    reply = request_of(world)
    world.store.is_free.set()
    await turns()
    assert codes(reply.value) == [code]


async def test_topics_that_need_no_store_have_their_own_answers() -> None:
    world = SlowWorld()
    reply = create(world, "new", "old", "in/valid")
    await turns()
    world.after(TIMEOUT_MS)
    await turns()
    assert codes(reply.value) == [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    world.store.is_free.set()
    await turns(20)


@pytest.mark.parametrize("failure", [ValueError("the reason"), StoreFailed("the reason"), OutcomeUnknown("the reason")])
async def test_a_late_failure_is_logged_and_affects_no_request(
    capsys: pytest.CaptureFixture[str], failure: Exception
) -> None:
    world = SlowWorld()
    world.store.failure = failure
    reply = create(world, "new")
    await turns()
    world.after(TIMEOUT_MS)
    await turns()
    assert codes(reply.value) == [ErrorCode.REQUEST_TIMED_OUT]
    world.store.is_free.set()
    await turns(20)
    assert "the reason" in capsys.readouterr().out


async def test_the_work_for_each_change_does_not_grow_with_their_number() -> None:
    """Thousands of topics whose creation ends in one write of the store must not block the loop."""

    async def calls_for(count: int) -> int:
        free, calls = asyncio.Event(), 0

        async def change() -> int:
            await free.wait()
            return 1

        def counted(frame: FrameType, event: str, argument: object) -> None:
            nonlocal calls
            calls += frame.f_code.co_filename == timeout.__file__

        changes = (change() for _ in range(count))
        waiting = asyncio.gather(timeout.gather_within(World().node, TIMEOUT_MS, changes))
        await turns()
        free.set()
        sys.setprofile(counted)
        try:
            await waiting
        finally:
            sys.setprofile(None)
        return calls

    assert await calls_for(400) < 5 * await calls_for(100)
