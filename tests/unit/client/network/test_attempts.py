"""Failures that the caller does not see; what each error action does is in test_cluster.py."""

import asyncio

import pytest
from tests.unit.client.network.scripted import eventually
from tests.unit.client.network.test_cluster import FETCH, HEARTBEAT, client, code, responds, scripted

from rota.client.errors import Unreachable
from rota.client.network.attempts import RETRIED
from rota.client.network.error_actions_page import ErrorAction
from rota.client.network.targets import Node
from rota.protocol.messages.fetch import FetchRequest, FetchResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.metadata import MetadataRequest


def test_the_error_actions_that_are_retried() -> None:
    assert set(ErrorAction) - RETRIED == {
        ErrorAction.OK,
        ErrorAction.REJOIN,
        ErrorAction.RESET,
        ErrorAction.ABORT,
        ErrorAction.FATAL,
    }


async def test_refresh_reads_metadata_before_the_next_try() -> None:
    async with scripted() as brokers:
        brokers[0].on(FetchRequest, responds(6, 0, answer=FetchResponse))
        async with client(*brokers) as cluster:
            await cluster.send_request_until(Node(0), FETCH, code, what="reading")
            requests = [type(item) for item in brokers[0].requests[2:]]
            assert requests == [FetchRequest, MetadataRequest, FetchRequest]


async def test_retries_wait_with_growing_backoff() -> None:
    """The waits grow: ten tries at 1, 2, 4, 5, 5 … ms take at least their sum."""
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, responds(*[14] * 9, 0))
        async with client(*brokers) as cluster:
            loop = asyncio.get_running_loop()
            begun = loop.time()
            await cluster.send_request_until(Node(0), HEARTBEAT, code, what="beating")
            assert (loop.time() - begun) * 1000 >= 0.8 * (1 + 2 + 4 + 6 * 5)


async def test_a_timeout_error_of_the_request_factory_is_raised_unchanged() -> None:
    async with scripted() as brokers, client(*brokers) as cluster:

        def broken(_: int) -> HeartbeatRequest:
            raise TimeoutError("somebody else's")

        with pytest.raises(TimeoutError, match="somebody else's"):
            await cluster.send_request_until(Node(0), broken, code, what="beating")


async def test_a_cancelled_call_is_over() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, responds(14))
        async with client(*brokers) as cluster:
            pending = asyncio.create_task(cluster.send_request_until(Node(0), HEARTBEAT, code, what="beating"))
            await asyncio.sleep(0)
            pending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pending


async def test_closing_ends_a_retry_loop_at_once() -> None:
    """Who is in the middle of its attempts hears of it at once, not when its time is over."""
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, lambda _: None)
        async with client(*brokers) as cluster:
            pending = asyncio.create_task(cluster.send_request_until(Node(0), HEARTBEAT, code, what="beating"))
            looking = asyncio.create_task(cluster.until(lambda _: None, what="looking"))
            await eventually(lambda: brokers[0].counted()[HeartbeatRequest])
        async with asyncio.timeout(5):
            for task in (pending, looking):
                with pytest.raises(Unreachable, match="closed"):
                    await task
