"""The queue of commits: order, whose name they speak in, what is logged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.client.consumer.bookkeeper import GROUP, Bookkeeper, consuming
from tests.unit.client.consumer.kit import P0
from tests.unit.client.network.scripted import eventually

from rota.client.consumer.commit_queue import CommitQueue
from rota.client.errors import BrokerError, CommitFailed, TimedOut
from rota.client.types import GroupMetadata, OffsetAndMetadata
from rota.protocol.errors import ErrorCode

MEMBER = GroupMetadata(GROUP, 3, "teller-1")


def at(offset: int) -> dict:
    return {P0: OffsetAndMetadata(offset)}


class Queue:
    """CommitQueue on a bookkeeper, and what they told."""

    def __init__(self, keeper: Bookkeeper, commits: CommitQueue) -> None:
        self.keeper, self.commits = keeper, commits
        self.refused: list[tuple[GroupMetadata, int]] = []
        self.ended = 0


@pytest.fixture
async def queue() -> AsyncIterator[Queue]:
    keeper = Bookkeeper(1)
    async with consuming(keeper, auto_commit_interval_ms=0, retry_backoff_ms=1) as consumer:
        consumer.assign(P0)
        await eventually(lambda: consumer._cluster.metadata.topic_id(P0.topic))
        its = Queue(keeper, consumer._committer.queue)

        def ended() -> None:
            its.ended += 1

        its.commits._refused = lambda group, code: its.refused.append((group, code))
        its.commits._ended = ended
        yield its
        keeper.open.set()
        consumer.assign(())


async def test_commits_are_sent_one_at_a_time_in_call_order(queue: Queue) -> None:
    queue.keeper.open.clear()
    first, second = queue.commits.soon(MEMBER, at(1)), queue.commits.soon(MEMBER, at(2))
    third = asyncio.create_task(queue.commits.commit(MEMBER, at(3)))
    await eventually(lambda: queue.keeper.commits)
    await asyncio.sleep(0)
    assert queue.keeper.commits == [{0: 1}]
    queue.keeper.open.set()
    await asyncio.gather(first, second, third)
    assert queue.keeper.commits == [{0: 1}, {0: 2}, {0: 3}]


async def test_a_retry_is_not_overtaken(queue: Queue) -> None:
    queue.keeper.refusals = [int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * 2
    await asyncio.gather(queue.commits.soon(MEMBER, at(1)), queue.commits.soon(MEMBER, at(2)))
    assert queue.keeper.commits == [{0: 1}] * 3 + [{0: 2}]


async def test_one_that_is_cancelled_while_it_waits_lets_the_others_keep_their_order(queue: Queue) -> None:
    queue.keeper.open.clear()
    first, second, third = (queue.commits.soon(MEMBER, at(offset)) for offset in (1, 2, 3))
    await eventually(lambda: queue.keeper.commits)
    second.cancel()
    await asyncio.wait([second])
    assert queue.keeper.commits == [{0: 1}]
    queue.keeper.open.set()
    await asyncio.gather(first, third)
    assert queue.keeper.commits == [{0: 1}, {0: 3}]


async def test_the_time_counts_while_earlier_ones_are_waited_for(queue: Queue) -> None:
    queue.keeper.open.clear()
    first = queue.commits.soon(MEMBER, at(1))
    with pytest.raises(TimedOut, match="earlier commits"):
        await queue.commits.commit(MEMBER, at(2), 20)
    queue.keeper.open.set()
    await first


async def test_c14_one_that_waits_belongs_to_the_topic_of_its_call(queue: Queue) -> None:
    """The topic is created again meanwhile; the coordinator refuses the offset for its old id."""
    queue.keeper.open.clear()
    first, second = queue.commits.soon(MEMBER, at(1)), queue.commits.soon(MEMBER, at(2))
    await eventually(lambda: queue.keeper.commits)
    queue.keeper.topic_id = bytes(range(1, 17))
    await queue.commits._cluster.refresh()
    queue.keeper.open.set()
    await asyncio.wait_for(asyncio.gather(first, second), 10)
    assert queue.keeper.commits[-1] == {0: 2}, "of the old id, which the bookkeeper asserts"


async def test_a_failed_commit_does_not_affect_the_next(queue: Queue) -> None:
    queue.keeper.refusals = [int(ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    first, second = queue.commits.soon(MEMBER, at(1)), queue.commits.soon(MEMBER, at(2))
    await second
    with pytest.raises(BrokerError):
        await first


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
async def test_the_membership_is_told_of_a_fenced_commit(queue: Queue, code: ErrorCode) -> None:
    queue.keeper.refusals = [int(code)]
    with pytest.raises(CommitFailed):
        await queue.commits.commit(MEMBER, at(1))
    assert queue.refused == [(MEMBER, code)]


async def test_an_automatic_commit_that_fails_is_logged_and_left_at_that(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    queue.keeper.refusals = [int(ErrorCode.GROUP_AUTHORIZATION_FAILED)] * 2
    queue.commits.automatic(MEMBER, at(1))
    await eventually(lambda: queue.ended)
    await queue.commits.automatic_now(MEMBER, at(2), 1_000)
    assert caplog.text.count("Automatic commit of offsets failed") == 2
    assert "orders-0" in caplog.text


async def test_an_empty_automatic_commit_sends_no_request(queue: Queue) -> None:
    queue.commits.automatic(MEMBER, {})
    await queue.commits.automatic_now(MEMBER, {}, 1_000)
    assert queue.keeper.commits == []


async def test_a_failed_background_commit_is_logged(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    queue.keeper.refusals = [int(ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    task = queue.commits.soon(MEMBER, at(1))
    task.add_done_callback(queue.commits.log_failure)
    await asyncio.wait([task])
    await eventually(lambda: "A commit failed" in caplog.text)


async def test_closing_cancels_unanswered_commits(queue: Queue) -> None:
    queue.keeper.open.clear()
    first, second = queue.commits.soon(MEMBER, at(1)), queue.commits.soon(MEMBER, at(2))
    await queue.commits.wait_until_answered(20)
    assert not first.done()
    await queue.commits.close()
    assert first.cancelled()
    assert second.cancelled()


async def test_a_commit_that_is_cancelled_before_its_first_step_holds_up_no_later_one(queue: Queue) -> None:
    never_ran = queue.commits.soon(MEMBER, at(1))
    never_ran.cancel()
    await asyncio.wait_for(queue.commits.commit(MEMBER, at(2)), 5)
    assert queue.keeper.commits == [{0: 2}]


async def test_a_commit_cancelled_before_its_first_step_keeps_the_order_of_those_around_it(queue: Queue) -> None:
    queue.keeper.open.clear()
    first = queue.commits.soon(MEMBER, at(1))
    await eventually(lambda: queue.keeper.commits)
    queue.commits.soon(MEMBER, at(2)).cancel()
    third = queue.commits.soon(MEMBER, at(3))
    for _ in range(20):
        await asyncio.sleep(0)
    assert queue.keeper.commits == [{0: 1}]
    queue.keeper.open.set()
    await asyncio.wait_for(asyncio.gather(first, third), 5)
    assert queue.keeper.commits == [{0: 1}, {0: 3}]
