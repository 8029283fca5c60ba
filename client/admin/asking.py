"""How the calls of an Admin ask: one request for many things, until each of them is settled.

Laws
    A call ends by its deadline, over all the requests that it takes.
    Things that different brokers answer for are asked side by side, one request for each broker; what has moved
    meanwhile is followed one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from rota.client.admin.outcomes import Answer, Asked, Outcomes
from rota.client.errors import KafkaError
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Node, Target

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

SIDE_BY_SIDE_MAX: Final = 64  # requests of one call under way at once
BROKER_WAIT_SHARE: Final = 0.8  # of request_timeout_ms, for what a broker waits for before it answers

Build = Callable[[Sequence[K]], Any]  # the request for these
Read = Callable[[Asked[K], Any], Iterable[Answer[K, V]]]  # an answer, thing by thing


class Deadline:
    """When a call has to be over, and how long a broker may wait inside one request of it."""

    def __init__(self, timeout_ms: int, request_timeout_ms: int) -> None:
        self._ends = asyncio.get_running_loop().time() + timeout_ms / 1000
        self._request_ms = request_timeout_ms

    @property
    def left_ms(self) -> int:
        return max(1, int((self._ends - asyncio.get_running_loop().time()) * 1000))

    @property
    def broker_ms(self) -> int:
        """For the `timeout_ms` in a request: the answer has to be here before the client gives the connection up."""
        return max(1, int(min(self.left_ms, self._request_ms) * BROKER_WAIT_SHARE))


async def settle(
    cluster: Cluster,
    target: Target,
    outcomes: Outcomes[K, V],
    build: Build[K],
    read: Read[K, V],
    deadline: Deadline,
    *,
    among: Sequence[K] | None = None,
    oldest: int = 0,
    newest: int | None = None,
) -> None:
    """Ask the target for what is open (of `among`) until all of it is settled. Raises nothing: see `outcomes`."""
    asked = Asked[K](-1, ())

    def request(node: int) -> Any:
        nonlocal asked
        asked = Asked(node, outcomes.open(among))
        return build(asked.keys)

    try:
        await cluster.ask_until(
            target,
            request,
            lambda answer: [outcomes.take(one) for one in read(asked, answer)],
            what=outcomes.what,
            timeout_ms=deadline.left_ms,
            version_min=oldest,
            version_max=newest,
        )
    except KafkaError as failure:
        outcomes.give_up(failure, among)
    else:
        outcomes.give_up(None, among)


async def settle_where(
    cluster: Cluster,
    locate: Callable[[K], Awaitable[int | None]],
    target: Callable[[K], Target],
    outcomes: Outcomes[K, V],
    build: Build[K],
    read: Read[K, V],
    deadline: Deadline,
    *,
    oldest: int = 0,
    newest: int | None = None,
) -> None:
    """One request for each broker that `locate` names, then one by one what that did not settle.

    `oldest`, `newest`: versions that can say it. One that can say it of one thing alone settles the first.
    """
    nodes = await _located(locate, outcomes)
    many = [(node, keys) for node, keys in nodes.items() if node is not None and len(keys) > 1]

    async def at_once(node: int, keys: list[K]) -> None:
        try:
            answer = await cluster.ask(
                node, build(keys), timeout_ms=deadline.broker_ms, version_min=oldest, version_max=newest
            )
            for one in read(Asked(node, tuple(keys)), answer):
                outcomes.take(one)
        except KafkaError:
            return  # each of them is asked by itself, and fails by itself

    async def alone(key: K) -> None:
        await settle(cluster, target(key), outcomes, build, read, deadline, among=(key,), oldest=oldest, newest=newest)

    await side_by_side(partial(at_once, node, keys) for node, keys in many)
    await side_by_side(partial(alone, key) for key in outcomes.open())


async def _located(locate: Callable[[K], Awaitable[int | None]], outcomes: Outcomes[K, V]) -> dict[int | None, list[K]]:
    nodes: dict[int | None, list[K]] = {}

    async def find(key: K) -> None:
        try:
            nodes.setdefault(await locate(key), []).append(key)
        except KafkaError as failure:
            outcomes.fail(key, failure)

    await side_by_side(partial(find, key) for key in outcomes.open())
    return nodes


async def every_node(
    cluster: Cluster,
    outcomes: Outcomes[int, V],
    build: Build[int],
    read: Read[int, V],
    deadline: Deadline,
    *,
    oldest: int = 0,
) -> None:
    """The same question to each broker that is open in `outcomes`."""

    async def one(node: int) -> None:
        await settle(cluster, Node(node), outcomes, build, read, deadline, among=(node,), oldest=oldest)

    await side_by_side(partial(one, node) for node in outcomes.open())


async def side_by_side(works: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """All of them, SIDE_BY_SIDE_MAX at once. They settle their own failures; what they raise is our mistake."""
    room = asyncio.Semaphore(SIDE_BY_SIDE_MAX)

    async def run(work: Callable[[], Awaitable[None]]) -> None:
        async with room:
            await work()

    async with asyncio.TaskGroup() as tasks:
        for work in works:
            tasks.create_task(run(work))
