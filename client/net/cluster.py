"""The brokers of a cluster: who they are, who leads what, and how each is asked.

Laws
    One connection per broker and purpose; dialled when it is first needed, dialled again with a growing wait.
    Metadata is one immutable value that is replaced as a whole; leader epochs in it never go back (KIP-320).
    Every call ends by its deadline; a call that is cancelled leaves the connection usable for everybody else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from rota.client.config import ClientConfig
from rota.client.errors import BrokerError, IllegalUse, KafkaError, TimedOut, Unreachable
from rota.client.log import logger
from rota.client.net.backoff import wait_ms
from rota.client.net.brokers import Brokers
from rota.client.net.metadata import Metadata
from rota.client.net.news import News
from rota.client.net.targets import AnyNode, Controller, Coordinator, Leader, Node, Target
from rota.client.net.verdicts import Verdict, verdict
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse

T = TypeVar("T")
Codes = Callable[[Any], Iterable[int]]  # the error codes in an answer
_log = logger("rota.client.cluster")
_AGAIN = (Verdict.RETRY, Verdict.REFRESH, Verdict.REDISCOVER)


class Cluster:
    """`await cluster.start()`, ask, `await cluster.close()`. Belongs to the loop on which it was started.

    `auto_create`: asking for a topic may create it, where the broker does that.
    """

    def __init__(self, config: ClientConfig, *, auto_create: bool = False) -> None:
        self._config = config
        self._auto_create = auto_create
        self._brokers: Brokers | None = None
        self._news: News | None = None
        self._topics: list[str] | None = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._coordinators: dict[str, int] = {}

    @property
    def config(self) -> ClientConfig:
        """What the client was told."""
        return self._config

    @property
    def metadata(self) -> Metadata:
        """What is known now."""
        return self._news.metadata if self._news is not None else Metadata()

    async def start(self) -> None:
        """Reach one bootstrap server and read metadata. Raises Unreachable after default_api_timeout_ms, naming each
        address and why it failed."""
        self._brokers = Brokers(self._config, lambda: self.metadata)
        self._news = News(self._config, self._read_metadata, self._auto_create)
        self._news.want(self._topics)
        self.background(self._news.run(), "metadata")
        try:
            await self._started(self._config.default_api_timeout_ms)
        except BaseException:
            await self.close()
            raise

    async def _started(self, timeout_ms: int) -> None:
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        failures = 0
        while True:
            try:
                await self.refresh()
                return
            except KafkaError as why:
                failures += 1
                pause = self._pause(failures)
                if asyncio.get_running_loop().time() + pause >= deadline:
                    raise Unreachable(f"no broker could be reached within {timeout_ms} ms: {why}") from why
                await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close every connection; who waits for an answer gets Unreachable."""
        if self._news is not None:
            self._news.close(Unreachable("the client was closed"))
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._brokers is not None:
            await self._brokers.close()

    # one attempt

    async def ask(
        self,
        node: int,
        request: Any,
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        version_min: int = 0,
        lane: str = "",
    ) -> Any:
        """The response dataclass of one request to that node, in the newest version that both sides know.

        `lane` names a connection of its own (Fetch waits on the broker and must not hold up heartbeats: lanes "",
        "fetch", "group"). `timeout_ms` defaults to request_timeout_ms. Raises Unreachable, TimedOut (the connection is
        given up), Unsupported. A ProduceRequest with acks=0 has no answer: None at once when it is written.
        """
        connection = await self._all_brokers.open(node, lane)
        if request.KEY == 0 and request.acks == 0:
            await connection.tell(request, version_max=version_max, version_min=version_min)
            return None
        seconds = (self._config.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        return await connection.ask(request, seconds, version_max=version_max, version_min=version_min)

    async def version(self, node: int, key: int) -> int:
        """The version in which `ask` would ask that node this API. Raises Unsupported, Unreachable, TimedOut."""
        connection = await self._all_brokers.open(node, "")
        return connection.version(key)

    @property
    def _all_brokers(self) -> Brokers:
        if self._brokers is None:
            raise IllegalUse("the cluster was not started: `await start()` first")
        return self._brokers

    @property
    def _all_news(self) -> News:
        if self._news is None:
            raise IllegalUse("the cluster was not started: `await start()` first")
        return self._news

    def _pause(self, failures: int) -> float:
        config = self._config
        return wait_ms(failures, config.retry_backoff_ms, config.retry_backoff_max_ms, random.random()) / 1000

    # until it worked

    async def ask_until(
        self,
        target: Target,
        request: Any | Callable[[int], Any],
        codes: Codes,
        *,
        what: str,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        version_min: int = 0,
        lane: str = "",
    ) -> Any:
        """Ask the target again and again until no code in the answer calls for another try (verdicts.py).

        `target`: AnyNode(), Node(3), Controller(), Coordinator("group"), Leader(partition). A callable `request` makes
        a fresh request for the node that is asked. REFRESH verdicts read metadata first, REDISCOVER ones look for
        the coordinator anew, with backoff in between. A FATAL code is left in the answer: the caller raises what fits.
        `timeout_ms` defaults to default_api_timeout_ms; then the last failure is raised, as TimedOut with its cause, or
        the answer with its last code is given back when there was one. `what` ("committing offsets") is for messages.
        """
        timeout_ms = self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        failures, answer, error, node = 0, None, None, -1
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    try:
                        node = await self._node(target)
                        made = request(node) if callable(request) else request
                        answer = await self.ask(node, made, version_max=version_max, version_min=version_min, lane=lane)
                        found = {verdict(made.KEY, code) for code in codes(answer)} if answer is not None else set()
                        if Verdict.FATAL in found or not found & set(_AGAIN):
                            return answer
                        error = None
                    except (Unreachable, TimedOut) as why:
                        found, error = {Verdict.REFRESH, Verdict.REDISCOVER}, why
                    failures += 1
                    if Verdict.REDISCOVER in found and isinstance(target, Coordinator):
                        self.coordinator_moved(target.group, node)
                    if Verdict.REFRESH in found:
                        self.stale()
                    await asyncio.sleep(self._pause(failures))
        except TimeoutError as late:
            if answer is not None and error is None:
                return answer
            last = f"; the last failure: {error}" if error is not None else ""
            raise TimedOut(f"{what} did not succeed within {timeout_ms} ms{last}") from error or late

    async def _node(self, target: Target) -> int:
        match target:
            case Node(id=node):
                return node
            case AnyNode():
                return self._all_brokers.least_busy()
            case Controller():
                known = self.metadata.controller
                return known if known in self.metadata.brokers else self._all_brokers.least_busy()
            case Coordinator(group=group):
                return await self.coordinator(group)
            case Leader(partition=partition):
                return await self.until(lambda known: known.leader(partition), what=f"looking for {partition}'s leader")

    async def coordinator(self, group: str, *, timeout_ms: int | None = None) -> int:
        """The node that coordinates the group: asked once, remembered. Raises TimedOut, BrokerError."""
        known = self._coordinators.get(group)
        if known is not None:
            return known
        answer = await self.ask_until(
            AnyNode(),
            FindCoordinatorRequest(key=group, coordinator_keys=(group,)),
            lambda answer: [one.error_code for one in answer.coordinators] or [answer.error_code],
            what=f"looking for the coordinator of group {group}",
            timeout_ms=timeout_ms,
        )
        one = answer.coordinators[0] if answer.coordinators else answer
        if one.error_code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            raise TimedOut(f"the coordinator of group {group} is not available: {ErrorCode.of(one.error_code).name}")
        if one.error_code:
            raise BrokerError(one.error_code, "looking for the coordinator", group=group, detail=one.error_message)
        if one.node_id not in self.metadata.brokers:
            await self.refresh()
        self._coordinators[group] = one.node_id
        return int(one.node_id)

    def coordinator_moved(self, group: str, node: int) -> None:
        """`node` said that it is not the coordinator, or is gone: the next `coordinator` asks."""
        if self._coordinators.get(group) == node:
            del self._coordinators[group]

    # metadata

    def want(self, topics: Iterable[str] | None) -> None:
        """Which topics this client keeps itself informed of; None: all of them (a pattern). Replaces the last wish."""
        self._topics = None if topics is None else list(topics)
        if self._news is not None:
            self._news.want(self._topics)

    async def refresh(self, *, timeout_ms: int | None = None) -> Metadata:
        """Ask for metadata now; calls that come meanwhile share the answer to the next request."""
        timeout_ms = self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._all_news.refresh()
        except TimeoutError as late:
            raise TimedOut(f"metadata did not come within {timeout_ms} ms") from late

    def stale(self) -> None:
        """Something was not where the metadata says: ask again soon, in the background, with backoff."""
        if self._news is not None:
            self._news.stale()

    async def _read_metadata(self, request: MetadataRequest) -> MetadataResponse:
        answer: MetadataResponse = await self._all_brokers.ask_any(request)
        return answer

    async def until(self, look: Callable[[Metadata], T | None], *, what: str, timeout_ms: int | None = None) -> T:
        """The first non-None thing that `look` finds in the metadata, refreshed with backoff until the timeout.

        Raises TimedOut that says `what` and the last error that the brokers gave for wanted topics.
        """
        timeout_ms = self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        failures, error = 0, None
        found = look(self.metadata)
        if found is not None:
            return found
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    try:
                        found = look(await self.refresh())
                        if found is not None:
                            return found
                    except (Unreachable, TimedOut) as why:
                        error = why
                    failures += 1
                    await asyncio.sleep(self._pause(failures))
        except TimeoutError:
            said = [f"{one.name}: {ErrorCode.of(one.error).name}" for one in self.metadata.topics.values() if one.error]
            told = f" ({', '.join(said)})" if said else f" ({error})" if error is not None else ""
            raise TimedOut(f"{what} did not succeed within {timeout_ms} ms{told}") from error

    def on_change(self, told: Callable[[Metadata], None]) -> Callable[[], None]:
        """`told(metadata)` after each answer that differs from what was known. Returns what ends it."""
        return self._all_news.on_change(told)

    def background(self, work: Awaitable[Any], name: str) -> None:
        """A task that lives as long as the cluster; a failure in it is logged and ends it alone."""
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finished(done, name))

    def _finished(self, task: asyncio.Task[Any], name: str) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (why := task.exception()) is not None:
            _log.error("a background task failed", task=name, exc_info=why)
