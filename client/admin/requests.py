"""Requests of an Admin: one request for many keys, repeated for the keys that have no final result yet.

Laws
    A call ends by its deadline, which covers all of its requests.
    Brokers receive one request each, concurrently; a key whose broker has changed is then requested by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from rota.client.admin.call_results import CallResults, KeyResult, SentRequest
from rota.client.errors import KafkaError
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Node, Target

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

CONCURRENT_REQUESTS_MAX: Final = 64  # in-flight requests of one call
LONGEST_MS: Final = 1 << 40  # of a call; also when it is given infinity
BROKER_TIMEOUT_SHARE: Final = 0.8  # part of request_timeout_ms that a broker may wait before it responds

Build = Callable[[Sequence[K]], Any]  # makes the request for these keys
Read = Callable[[SentRequest[K], Any], Iterable[KeyResult[K, V]]]  # yields the result of each key in a response


class Deadline:
    """The time by which a call ends. All times are in milliseconds."""

    def __init__(self, timeout_ms: int, request_timeout_ms: int) -> None:
        self._ends = asyncio.get_running_loop().time() + min(timeout_ms, LONGEST_MS) / 1000
        self._request_ms = request_timeout_ms

    @property
    def remaining_ms(self) -> int:
        """Milliseconds until the deadline, at least 1."""
        return max(1, int((self._ends - asyncio.get_running_loop().time()) * 1000))

    @property
    def broker_timeout_ms(self) -> int:
        """The `timeout_ms` field of a request: the broker responds before the client closes the connection."""
        return max(1, int(min(self.remaining_ms, self._request_ms) * BROKER_TIMEOUT_SHARE))


async def request_with_retries(
    cluster: Cluster,
    target: Target,
    results: CallResults[K, V],
    build: Build[K],
    read: Read[K, V],
    deadline: Deadline,
    *,
    keys: Sequence[K] | None = None,
    version_min: int = 0,
    version_max: int | None = None,
) -> None:
    """Send requests for the pending keys (those of `keys`, or all) until each has a final result or the deadline
    passes.

    Raises nothing: failures are recorded in `results`.
    """
    sent = SentRequest[K](-1, ())

    def request(node: int) -> Any:
        nonlocal sent
        sent = SentRequest(node, results.pending(keys))
        return build(sent.keys)

    try:
        await cluster.send_request_until(
            target,
            request,
            lambda response: [results.record(result) for result in read(sent, response)],
            what=results.what,
            timeout_ms=deadline.remaining_ms,
            version_min=version_min,
            version_max=version_max,
        )
    except KafkaError as failure:
        results.fail_pending(failure, keys)
    else:
        results.fail_pending(None, keys)


async def request_each_broker(
    cluster: Cluster,
    locate: Callable[[K], Awaitable[int | None]],
    target: Callable[[K], Target],
    results: CallResults[K, V],
    build: Build[K],
    read: Read[K, V],
    deadline: Deadline,
    *,
    version_min: int = 0,
    version_max: int | None = None,
) -> None:
    """Send one request to each broker that `locate` returns, then one request for each key that is still pending.

    `version_min`, `version_max`: the versions of the API to use. Where the version holds one key only, the first
    request gives the result of its first key.
    """
    versions: Any = {"version_min": version_min, "version_max": version_max}
    nodes = await _group_by_node(locate, results)
    batches = [(node, keys) for node, keys in nodes.items() if node is not None and len(keys) > 1]

    async def request_batch(node: int, keys: list[K]) -> None:
        try:
            response = await cluster.send_request_within(deadline.broker_timeout_ms, node, build(keys), **versions)
            for result in read(SentRequest(node, tuple(keys)), response):
                results.record(result)
        except KafkaError:
            return  # the keys stay pending: each is requested by itself

    async def request_key(key: K) -> None:
        await request_with_retries(cluster, target(key), results, build, read, deadline, keys=(key,), **versions)

    await run_concurrently(partial(request_batch, node, keys) for node, keys in batches)
    await run_concurrently(partial(request_key, key) for key in results.pending())


async def _group_by_node(
    locate: Callable[[K], Awaitable[int | None]], results: CallResults[K, V]
) -> dict[int | None, list[K]]:
    nodes: dict[int | None, list[K]] = {}

    async def find(key: K) -> None:
        try:
            nodes.setdefault(await locate(key), []).append(key)
        except KafkaError as failure:
            results.fail(key, failure)

    await run_concurrently(partial(find, key) for key in results.pending())
    return nodes


async def request_all_brokers(
    cluster: Cluster,
    results: CallResults[int, V],
    build: Build[int],
    read: Read[int, V],
    deadline: Deadline,
    *,
    version_min: int = 0,
) -> None:
    """Send a request to each broker that is pending in `results`; its keys are broker ids."""

    async def request_node(node: int) -> None:
        await request_with_retries(
            cluster, Node(node), results, build, read, deadline, keys=(node,), version_min=version_min
        )

    await run_concurrently(partial(request_node, node) for node in results.pending())


async def run_concurrently(calls: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Run all `calls`, at most CONCURRENT_REQUESTS_MAX at a time. Raises ExceptionGroup when a call raises."""
    slots = asyncio.Semaphore(CONCURRENT_REQUESTS_MAX)

    async def run(call: Callable[[], Awaitable[None]]) -> None:
        async with slots:
            await call()

    async with asyncio.TaskGroup() as tasks:
        for call in calls:
            tasks.create_task(run(call))
