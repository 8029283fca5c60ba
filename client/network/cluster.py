"""A Kafka cluster as the client sees it: its brokers, its metadata, and requests to each broker.

Laws
    One connection per broker and lane; it is opened at its first use and reopened after a growing wait.
    Metadata is one immutable value that is replaced as a whole; its leader epochs never decrease (KIP-320).
    Every call ends by its deadline; a cancelled call leaves the connection usable for other calls.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, Final, TypeVar

from rota.client.config import ClientConfig
from rota.client.errors import BrokerError, IllegalUse, KafkaError, TimedOut, Unreachable
from rota.client.log import logger
from rota.client.network.attempts import Attempts, Codes
from rota.client.network.backoff import wait_ms
from rota.client.network.brokers import Brokers
from rota.client.network.coordinators import NOUNS, TRANSACTION, Coordinators
from rota.client.network.metadata import BrokerInfo, Endpoint, Metadata, with_brokers, with_leader
from rota.client.network.metadata_updater import AutoCreate, MetadataUpdater
from rota.client.network.shielded_close import run_shielded
from rota.client.network.targets import AnyNode, Controller, Coordinator, Leader, Node, Target, TransactionCoordinator
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse
from rota.protocol.messages.produce import ProduceRequest
from rota.transport.connection import LINGER_SECONDS

__all__ = ["Cluster", "Codes"]

T = TypeVar("T")
_log = logger("rota.client.cluster")
_NOT_STARTED: Final = "the cluster was not started: `await start()` first"


class Cluster:
    """`await cluster.start()`, send requests, `await cluster.close()`. Belongs to the loop on which it was started.

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
        self._restart: asyncio.TimerHandle | None = None  # restarts the metadata updater after its task was cancelled
        self._coordinators = Coordinators(self._find_coordinator, self._add_coordinator_address)
        self._transaction_coordinators = Coordinators(
            self._find_coordinator, self._add_coordinator_address, TRANSACTION
        )

    @property
    def metadata(self) -> Metadata:
        """The current metadata."""
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
        """Run the metadata updater until the cluster is closed; restart it if other code cancels its task."""
        task = self.background(self._metadata_updater.run(), "metadata")
        task.add_done_callback(self._restart_metadata)

    def _restart_metadata(self, task: asyncio.Future[Any]) -> None:
        if task.cancelled() and not self.is_closed:
            loop = asyncio.get_running_loop()
            self._restart = loop.call_later(self.backoff_seconds(1), self._read_metadata_in_background)

    async def close(self, linger_seconds: float = LINGER_SECONDS) -> None:
        """Close every connection; pending calls raise Unreachable and are not retried. NC13: what was written and has
        no response gets `linger_seconds` to be sent."""
        self.is_closed = True
        if self._restart is not None:
            self._restart.cancel()
        if self._updater is not None:
            self._updater.close()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await run_shielded(self._closed(tasks, linger_seconds), "close the cluster")

    async def _closed(self, tasks: list[asyncio.Future[Any]], linger_seconds: float) -> None:
        if tasks:
            await asyncio.wait(tasks)
        if self._brokers is not None:
            await self._brokers.close(linger_seconds)

    # ---- one attempt

    async def send_request(
        self,
        node: int,
        request: Any,
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        version_min: int = 0,
        lane: str = "",
    ) -> Any:
        """Send one request to that node, in the newest version that both sides support; return its response.

        Each `lane` ("", "fetch", "group") has its own connection, so that a Fetch that waits on the broker does not
        delay heartbeats. `timeout_ms` defaults to request_timeout_ms. Raises Unreachable, TimedOut (after which the
        connection is closed), Unsupported. Returns None for a ProduceRequest with acks=0 as soon as it is written.
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
            await connection.send_without_response(request, seconds, version_min, version_max)
            return None
        return await connection.send_request(request, seconds, version_min, version_max)

    async def send_request_within(self, timeout_ms: int, node: int, request: Any, **how: Any) -> Any:
        """As `send_request`, for a call with a time of its own: the connection, which others use, is not closed when
        that is over (NC1), but after request_timeout_ms."""
        return await _within(timeout_ms, self.send_request(node, request, **how), f"a request to broker {node}")

    async def version(self, node: int, key: int) -> int:
        """Return the API version that `send_request` uses at that node. Raises Unsupported, Unreachable, TimedOut."""
        return (await self._all_brokers.any_lane(node)).version(key)

    # ---- retries

    async def send_request_until(
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
        """Send the request to the target until no error code in the response requires a retry (error_actions.py).

        `target`: AnyNode(), Node(3), Controller(), Coordinator("group"), TransactionCoordinator("id"),
        Leader(partition). A callable `request` builds the request for the chosen node at each attempt. REFRESH codes
        read metadata before the next attempt, REDISCOVER codes look up the coordinator again; attempts back off. Any
        other code ends the attempts, even beside retriable codes; the response with the code is returned, and the
        caller raises the error.
        `timeout_ms` defaults to default_api_timeout_ms. At the timeout the last response is returned if there is one,
        else TimedOut is raised from the last failure. `what` ("committing offsets") is for messages.
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
            case TransactionCoordinator(transactional_id=transactional_id):
                return await self._transaction_coordinators.of(transactional_id)
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
        """Return the node id of the group's coordinator, which is cached. Raises TimedOut, BrokerError."""
        known = self._coordinators.cached(group)
        if known is not None:
            return known
        what, timeout_ms = f"looking for the coordinator of group {group}", self._timeout_ms(timeout_ms)
        why = partial(self.describe_failures, Coordinator(group))
        return await _within(timeout_ms, self._coordinators.of(group), what, why)

    def coordinator_moved(self, group: str, node: int) -> None:
        """Remove `node` from the cache: it is not the coordinator any more, or unreachable."""
        self._coordinators.moved(group, node)

    def transaction_coordinator_moved(self, transactional_id: str, node: int) -> None:
        """Remove `node` from the cache: it is not the coordinator any more, or unreachable."""
        self._transaction_coordinators.moved(transactional_id, node)

    def finalized_feature(self, name: str) -> int:
        """Return the finalized level of a feature of the cluster, as the broker with the newest features epoch reports
        it (KIP-584); 0 when no connected broker reports it."""
        return self._all_brokers.finalized_feature(name)

    async def _find_coordinator(self, key: str, request: FindCoordinatorRequest) -> Any:
        noun = NOUNS[request.key_type]
        found = self._transaction_coordinators if request.key_type == TRANSACTION else self._coordinators
        return await self.send_request_until(
            AnyNode(), request, partial(found.codes, key), what=f"looking for the coordinator of {noun} {key}"
        )

    # ---- metadata

    def set_topics(self, topics: Iterable[str] | None) -> None:
        """Set the topics whose metadata this client keeps up to date; None: all topics (a pattern subscription)."""
        self._topics = None if topics is None else tuple(topics)
        if self._updater is not None:
            self._updater.set_topics(self._topics)

    async def refresh(self, *, timeout_ms: int | None = None) -> Metadata:
        """Request metadata now; calls during a request share the response to the next one. Raises Unreachable,
        TimedOut."""
        timeout_ms = self._timeout_ms(timeout_ms)
        return await _within(
            timeout_ms, self._metadata_updater.refresh(), "reading metadata", self._all_brokers.describe_failures
        )

    def request_refresh(self) -> None:
        """Request metadata in the background, with backoff, because the present metadata is stale."""
        if self._updater is not None:
            self._updater.request_refresh()

    def add_brokers(self, endpoints: Iterable[Endpoint]) -> None:
        """Add the brokers that a Produce or Fetch response has in its node_endpoints (KIP-951)."""
        brokers = [BrokerInfo(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) for endpoint in endpoints]
        self._metadata_updater.replace(with_brokers(self.metadata, brokers))

    def take_leader_hint(self, partition: TopicPartition, leader: int, epoch: int) -> None:
        """Set the leader that a Produce or Fetch response names (KIP-951), if its epoch is newer than the known epoch
        and its address is known."""
        self._metadata_updater.replace(with_leader(self.metadata, partition, leader, epoch))

    async def until(self, look: Callable[[Metadata], T | None], *, what: str, timeout_ms: int | None = None) -> T:
        """Refresh metadata with backoff until `look(metadata)` returns a value other than None, and return that.

        Raises TimedOut, whose message has `what` and the last error code of the topics, and the BrokerError that
        `look` raises of metadata that were read for this call: what was refused before may be allowed now.
        """
        timeout_ms = self._timeout_ms(timeout_ms)
        with suppress(BrokerError):
            found = look(self.metadata)
            if found is not None:
                return found
        return await _within(timeout_ms, self._looked(look), what, self.describe_failures)

    async def _looked(self, look: Callable[[Metadata], T | None]) -> T:
        read = self._metadata_updater.refresh
        while True:
            try:
                found = look(await read())
            except Unreachable:
                if self.is_closed:
                    raise
                found = None
            if found is not None:
                return found
            read = self._metadata_updater.next_response

    def describe_failures(self, target: Target | None = None) -> str:
        """Return why the coordinator was not found, the error codes of topics, or the failures of brokers, for error
        messages."""
        reason = ""
        match target:
            case Coordinator(group=group):
                reason = self._coordinators.reason(group)
            case TransactionCoordinator(transactional_id=transactional_id):
                reason = self._transaction_coordinators.reason(transactional_id)
        if reason:
            return reason
        topics = [
            f"{topic.name}: {ErrorCode.of(topic.error).name}" for topic in self.metadata.topics.values() if topic.error
        ]
        return "; ".join(topics) or self._all_brokers.describe_failures() or "no broker has given a reason"

    def on_change(self, listener: Callable[[Metadata], None]) -> Callable[[], None]:
        """Call `listener(metadata)` after each change of the metadata. Returns a function that removes the listener."""
        return self._metadata_updater.on_change(listener)

    def on_metadata_response(self, listener: Callable[[Metadata], None]) -> None:
        """Call `listener(metadata)` after each Metadata response, also when it has changed nothing."""
        self._metadata_updater.on_response(listener)

    async def _read_metadata(self, request: MetadataRequest) -> MetadataResponse:
        answer: MetadataResponse = await self._all_brokers.send_request_to_any(request, _refused)
        return answer

    def _add_coordinator_address(self, node: int, host: str, port: int) -> None:
        self._metadata_updater.replace(with_brokers(self.metadata, [BrokerInfo(node, host, port)]))

    # ---- background tasks

    def background(self, work: Awaitable[Any], name: str) -> asyncio.Future[Any]:
        """Start a task that is cancelled when the cluster is closed. An exception in it is logged and ends only it."""
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
    """Return the result of `work`. Raises TimedOut with `what` and the reason that `why` returns."""
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
