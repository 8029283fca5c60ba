"""A Kafka cluster as the client sees it: its brokers, its metadata, and requests to each broker.

Laws
    One connection per broker and purpose; dialled when it is first needed, dialled again with a growing wait.
    Metadata is one immutable value that is replaced as a whole; leader epochs in it never go back (KIP-320).
    Every call ends by its deadline; a call that is cancelled leaves the connection usable for everybody else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import nullcontext
from typing import Any, Final, TypeVar

from rota.client.config import ClientConfig
from rota.client.errors import IllegalUse, KafkaError, TimedOut, Unreachable
from rota.client.log import logger
from rota.client.network.attempts import Attempts, Codes
from rota.client.network.backoff import wait_ms
from rota.client.network.brokers import Brokers
from rota.client.network.coordinators import Coordinators, codes
from rota.client.network.metadata import BrokerInfo, Endpoint, Metadata, with_brokers, with_leader
from rota.client.network.metadata_updater import AutoCreate, MetadataUpdater
from rota.client.network.shielded_close import run_shielded
from rota.client.network.targets import AnyNode, Controller, Coordinator, Leader, Node, Target
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse
from rota.protocol.messages.produce import ProduceRequest

__all__ = ["Cluster", "Codes"]

T = TypeVar("T")
_log = logger("rota.client.cluster")
_NOT_STARTED: Final = "the cluster was not started: `await start()` first"


class Cluster:
    """`await cluster.start()`, ask, `await cluster.close()`. Belongs to the loop on which it was started.

    `auto_create`: reading metadata of a topic may create it, where the broker does that. A callable is called before
    each read, and returns the names of the topics that may be created; it may call `set_topics`.
    """

    def __init__(self, config: ClientConfig, *, auto_create: AutoCreate = False) -> None:
        self.config = config
        self._auto_create = auto_create
        self.is_closed = False
        self._topics: tuple[str, ...] | None = ()
        self._tasks: set[asyncio.Future[Any]] = set()
        self._brokers: Brokers | None = None
        self._updater: MetadataUpdater | None = None
        self._restart: asyncio.TimerHandle | None = None  # of the metadata reader, after its task was cancelled
        self._coordinators = Coordinators(self._find_coordinator, self._add_coordinator_address)

    @property
    def metadata(self) -> Metadata:
        """What is known now."""
        return self._updater.metadata if self._updater is not None else Metadata()

    async def start(self) -> None:
        """Reach one bootstrap server and read metadata. Raises Unreachable after default_api_timeout_ms, naming each
        address and why it failed."""
        if self._updater is not None:
            raise IllegalUse("a cluster is started once: make another one")
        self._brokers = Brokers(self.config, lambda: self.metadata, self.request_refresh)
        self._updater = MetadataUpdater(self.config, self._read_metadata, self._auto_create)
        self._updater.set_topics(self._topics)
        self._updater.on_change(lambda _: self._all_brokers.adopt_bootstrap())
        self._read_metadata_in_background()
        try:
            timeout_ms = self.config.default_api_timeout_ms
            await self.until(lambda known: known.brokers or None, what="reaching a broker", timeout_ms=timeout_ms)
        except TimedOut as late:
            await self.close()
            raise Unreachable(str(late)) from late
        except BaseException:
            await self.close()
            raise

    def _read_metadata_in_background(self) -> None:
        """Run the metadata updater until the cluster is closed, again when its task is cancelled by somebody else."""
        task = self.background(self._metadata_updater.run(), "metadata")
        task.add_done_callback(self._restart_metadata)

    def _restart_metadata(self, task: asyncio.Future[Any]) -> None:
        if task.cancelled() and not self.is_closed:
            loop = asyncio.get_running_loop()
            self._restart = loop.call_later(self.backoff_seconds(1), self._read_metadata_in_background)

    async def close(self) -> None:
        """Close every connection; who waits for an answer gets Unreachable, and asks no more."""
        self.is_closed = True
        if self._restart is not None:
            self._restart.cancel()
        if self._updater is not None:
            self._updater.close()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await run_shielded(self._closed(tasks), "close the cluster")

    async def _closed(self, tasks: list[asyncio.Future[Any]]) -> None:
        if tasks:
            await asyncio.wait(tasks)
        if self._brokers is not None:
            await self._brokers.close()

    # ---- one attempt

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
        seconds = (self.config.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        connection = self._all_brokers.ready(node, lane)
        if connection is None:
            begun = asyncio.get_running_loop().time()
            limit = asyncio.timeout(seconds)
            try:
                async with limit:
                    connection = await self._all_brokers.open(node, lane)
            except TimeoutError as late:
                if not limit.expired():
                    raise
                raise TimedOut(f"no connection to broker {node} within {seconds * 1000:.0f} ms") from late
            seconds = max(seconds - (asyncio.get_running_loop().time() - begun), 0.001)
        if isinstance(request, ProduceRequest) and request.acks == 0:
            await connection.send_without_response(request, version_min, version_max)
            return None
        return await connection.ask(request, seconds, version_min, version_max)

    async def version(self, node: int, key: int) -> int:
        """The version in which `ask` would ask that node this API. Raises Unsupported, Unreachable, TimedOut."""
        return (await self._all_brokers.any_lane(node)).version(key)

    # ---- until it worked

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
        """Send the request to the target until no code in the answer calls for a retry (error_actions.py).

        `target`: AnyNode(), Node(3), Controller(), Coordinator("group"), Leader(partition). A callable `request` makes
        a fresh request for the node that is asked. REFRESH codes read metadata first, REDISCOVER codes look for
        the coordinator anew, with backoff in between. A FATAL code is left in the answer: the caller raises what fits;
        it ends the attempts even beside codes that another try could make good, as REJOIN and RESET do.
        `timeout_ms` defaults to default_api_timeout_ms; then the last failure is raised, as TimedOut with its cause, or
        the answer with its last code is given back when there was one. `what` ("committing offsets") is for messages.
        """
        how = {"version_max": version_max, "version_min": version_min, "lane": lane}
        attempts = Attempts(self, target, request, codes, how)
        wanted = (
            self._metadata_updater.with_topics((target.partition.topic,))
            if isinstance(target, Leader)
            else nullcontext()
        )
        with wanted:
            return await attempts.run(what, self._timeout_ms(timeout_ms))

    async def locate(self, target: Target) -> int:
        """Return the id of the node that requests for `target` go to now. Raises Unreachable, TimedOut, BrokerError."""
        match target:
            case Node(id=node):
                return node
            case AnyNode():
                return self._all_brokers.least_busy()
            case Controller():
                known = self.metadata
                return known.controller if known.controller in known.brokers else self._all_brokers.least_busy()
            case Coordinator(group=group):
                return await self.coordinator(group)
            case Leader(partition=partition):
                return await self.until(
                    lambda known: known.leader(partition), what=f"finding the leader of {partition}"
                )

    def backoff_seconds(self, failures: int) -> float:
        """Seconds to wait after `failures` consecutive failures."""
        config = self.config
        return wait_ms(failures, config.retry_backoff_ms, config.retry_backoff_max_ms, random.random()) / 1000

    # ---- coordinators

    async def coordinator(self, group: str, *, timeout_ms: int | None = None) -> int:
        """The node that coordinates the group: asked once, remembered. Raises TimedOut, BrokerError."""
        known = self._coordinators.cached(group)
        if known is not None:
            return known
        what, timeout_ms = f"looking for the coordinator of group {group}", self._timeout_ms(timeout_ms)
        return await _within(timeout_ms, self._coordinators.of(group), what)

    def coordinator_moved(self, group: str, node: int) -> None:
        """`node` said that it is not the coordinator, or is gone: the next `coordinator` asks."""
        self._coordinators.moved(group, node)

    async def _find_coordinator(self, group: str, request: FindCoordinatorRequest) -> Any:
        return await self.ask_until(AnyNode(), request, codes, what=f"looking for the coordinator of group {group}")

    # ---- metadata

    def set_topics(self, topics: Iterable[str] | None) -> None:
        """The topics whose metadata this client keeps up to date; None: all topics (a pattern subscription). Replaces
        the topics that were set before."""
        self._topics = None if topics is None else tuple(topics)
        if self._updater is not None:
            self._updater.set_topics(self._topics)

    async def refresh(self, *, timeout_ms: int | None = None) -> Metadata:
        """Ask for metadata now; calls that come meanwhile share the answer to the next request. Raises Unreachable,
        TimedOut."""
        timeout_ms = self._timeout_ms(timeout_ms)
        return await _within(
            timeout_ms, self._metadata_updater.refresh(), "reading metadata", self._all_brokers.describe_failures
        )

    def request_refresh(self) -> None:
        """Read metadata soon, in the background, with backoff: it proved wrong."""
        if self._updater is not None:
            self._updater.request_refresh()

    def add_brokers(self, endpoints: Iterable[Endpoint]) -> None:
        """Take over the brokers that a Produce or Fetch answer names in its node_endpoints (KIP-951)."""
        brokers = [BrokerInfo(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) for endpoint in endpoints]
        self._metadata_updater.replace(with_brokers(self.metadata, brokers))

    def take_leader_hint(self, partition: TopicPartition, leader: int, epoch: int) -> None:
        """Take over the leader that a Produce or Fetch answer names (KIP-951), when its epoch is newer than the known
        epoch and the broker is known."""
        self._metadata_updater.replace(with_leader(self.metadata, partition, leader, epoch))

    async def until(self, look: Callable[[Metadata], T | None], *, what: str, timeout_ms: int | None = None) -> T:
        """The first non-None thing that `look` finds in the metadata, refreshed with backoff until the timeout.

        Raises TimedOut that says `what` and the last error that the brokers gave for wanted topics; whatever `look`
        raises.
        """
        timeout_ms = self._timeout_ms(timeout_ms)
        found = look(self.metadata)
        return (
            found if found is not None else await _within(timeout_ms, self._looked(look), what, self.describe_failures)
        )

    async def _looked(self, look: Callable[[Metadata], T | None]) -> T:
        failures = 0
        while True:
            try:
                found = look(await self._metadata_updater.refresh())
            except Unreachable:
                if self.is_closed:
                    raise
                found = None
            if found is not None:
                return found
            failures += 1
            await asyncio.sleep(self.backoff_seconds(failures))

    def describe_failures(self) -> str:
        """For messages: the error codes of topics, or why brokers do not answer."""
        topics = [
            f"{topic.name}: {ErrorCode.of(topic.error).name}" for topic in self.metadata.topics.values() if topic.error
        ]
        return "; ".join(topics) or self._all_brokers.describe_failures() or "no broker has said why"

    def on_change(self, listener: Callable[[Metadata], None]) -> Callable[[], None]:
        """Call `listener(metadata)` after each change of the metadata. Returns a function that ends it."""
        return self._metadata_updater.on_change(listener)

    async def _read_metadata(self, request: MetadataRequest) -> MetadataResponse:
        answer: MetadataResponse = await self._all_brokers.ask_any(request, _refused)
        return answer

    def _add_coordinator_address(self, node: int, host: str, port: int) -> None:
        self._metadata_updater.replace(with_brokers(self.metadata, [BrokerInfo(node, host, port)]))

    # ---- the rest

    def background(self, work: Awaitable[Any], name: str) -> asyncio.Future[Any]:
        """A task that lives as long as the cluster; a failure in it is logged and ends it alone."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finished(done, name))
        return task

    def _finished(self, task: asyncio.Future[Any], name: str) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (why := task.exception()) is not None:
            _log.error("a background task failed", task=name, exc_info=why)

    def _timeout_ms(self, timeout_ms: int | None) -> int:
        return self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms

    @property
    def _all_brokers(self) -> Brokers:
        if self._brokers is None:
            raise IllegalUse(_NOT_STARTED)
        return self._brokers

    @property
    def _metadata_updater(self) -> MetadataUpdater:
        if self._updater is None:
            raise IllegalUse(_NOT_STARTED)
        return self._updater


async def _within(timeout_ms: int, work: Coroutine[Any, Any, T], what: str, why: Callable[[], str] = lambda: "") -> T:
    """What the work gives, or TimedOut that says what did not happen, and why."""
    limit = asyncio.timeout(timeout_ms / 1000)
    try:
        async with limit:
            return await work
    except TimeoutError as late:
        if not limit.expired() or isinstance(late, KafkaError):
            raise
        reason = why()
        raise TimedOut(f"{what} did not succeed within {timeout_ms} ms{': ' + reason if reason else ''}") from None


def _refused(answer: MetadataResponse) -> str | None:
    return ErrorCode.of(answer.error_code).name if answer.error_code else None
