"""Sends batches to brokers, handles their answers, retries or gives up what failed.

Laws
    At most `max_in_flight_requests_per_connection` requests to a broker are without an answer.
    Each request has a task; one timer triggers the next check. A task that is cancelled, even before its first step,
    leaves nothing waiting: its batches are sent again.
    A batch is sent only over an open connection; a batch that was given up before it was sent was not written.
    Up to `FAILURES_KEPT_MAX` failures that were not raised to a caller are kept until `take_unreported`.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import field
from functools import partial
from typing import Any, Final

from rota.client.config import INT32_MAX, ProducerConfig
from rota.client.errors import (
    AuthenticationFailed,
    BrokerError,
    DeliveryFailed,
    KafkaError,
    TimedOut,
    Unreachable,
    Unsupported,
)
from rota.client.log import logger
from rota.client.network.backoff import wait_ms
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode
from rota.client.producer.accumulator import NEVER, Accumulator
from rota.client.producer.batch import Batch, Failed
from rota.client.producer.delivery import first_unreported
from rota.client.producer.produce_response import Effects, ProduceResults
from rota.client.producer.requests import ADDED_BY_CLIENT_VERSION_MAX, answers, request, version_max
from rota.client.producer.transaction import BROKERS_ADD
from rota.protocol.dataclass import dataclass
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rota.protocol.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse

FAILURES_KEPT_MAX: Final = 1_000

Pair = tuple[Batch, PartitionProduceResponse | None]
_log = logger("rota.client.producer")


@dataclass(slots=True)
class BrokerState:
    """One broker. `version`: of Produce, None while there is no connection. `requests`: the batches of each request
    without an answer."""

    node: int
    version: int | None = None
    is_connecting: bool = False
    failures: int = 0
    requests: list[list[Batch]] = field(default_factory=list)

    @property
    def in_flight(self) -> int:
        return len(self.requests)


class Sender:
    """Call `look()` after an append; `freed` is called when memory becomes free.

    With transactions `on_failed(batch)` is called for the batches of a transaction that have failed, and `before_send`
    before batches are sent: partitions may have to be added to the transaction first.
    """

    def __init__(
        self, config: ProducerConfig, cluster: Cluster, accumulator: Accumulator, freed: Callable[[], None]
    ) -> None:
        self._config, self._cluster, self._accumulator, self._freed = config, cluster, accumulator, freed
        self._results = ProduceResults(accumulator, config.retries, self._pause_ms)
        self._loop = asyncio.get_running_loop()
        self._brokers: dict[int, BrokerState] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._handle: asyncio.Handle | None = None
        self._is_requesting_id = False
        self._closed = False
        self._unreported: deque[Batch] = deque(maxlen=FAILURES_KEPT_MAX)
        self.next_pump_ms: float = NEVER
        self.on_failed: Callable[[Batch], None] = lambda batch: None
        self.before_send: Callable[[], None] = lambda: None

    def now_ms(self) -> float:
        """The loop's time."""
        return self._loop.time() * 1000

    # ---- timer

    def look(self) -> None:
        """Set the timer to the accumulator's due time."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        at = self.next_pump_ms = self._accumulator.due_ms
        if at < NEVER and not self._closed:
            soon = at <= self.now_ms()
            self._handle = self._loop.call_soon(self.pump) if soon else self._loop.call_at(at / 1000, self.pump, at)

    def pump(self, now_ms: float = 0.0) -> None:
        """Fail expired batches, send ready ones, set the timer."""
        if self._closed:
            return
        accumulator, now_ms = self._accumulator, max(now_ms, self.now_ms())
        self._apply(self._results.expire(now_ms))
        if accumulator.incomplete:
            self.identify()
            self.before_send()
        ready = accumulator.ready(now_ms)
        for node in ready.nodes:
            self._send_ready(node, now_ms)
        if ready.nodes:
            ready = accumulator.ready(now_ms)
        if ready.leaderless:
            self._cluster.request_refresh()
            accumulator.due_ms = min(accumulator.due_ms, now_ms + self._config.retry_backoff_max_ms)
        self.look()

    def _send_ready(self, node: int, now_ms: float) -> None:
        state = self._brokers.get(node)
        if state is None:
            state = self._brokers[node] = BrokerState(node)
        while state.in_flight < self._config.max_in_flight_requests_per_connection:
            if state.version is None:
                self._open(state)
                return
            batches = self._accumulator.drain(node, now_ms)
            if not batches:
                return
            state.requests.append(batches)
            self._spawn(self._send(state, state.version, batches), partial(self._lost, state, batches))

    def _spawn(self, work: Coroutine[Any, Any, None], on_failure: Callable[[], None]) -> None:
        """Run `work` as a task; call `on_failure` when it is cancelled, even before its first step, or raises."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, on_failure))

    def _ended(self, on_failure: Callable[[], None], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        why = None if task.cancelled() else task.exception()
        if why is not None:
            _log.error("a request of the producer ended in an error of its own", exc_info=why)
        if (task.cancelled() or why is not None) and not self._closed:
            on_failure()
            self._accumulator.due_ms = min(self._accumulator.due_ms, self.now_ms() + self._pause_ms(1))
            self.look()

    def _lost(self, state: BrokerState, batches: list[Batch]) -> None:
        """A request whose task ended without settling its batches: it was cancelled, or failed by our own mistake."""
        if any(batches is running for running in state.requests):
            self._finish(state, batches)
            self._apply(self._results.unanswered(batches, Unreachable("a request was cancelled"), self.now_ms()))

    @staticmethod
    def _finish(state: BrokerState, batches: list[Batch]) -> None:
        state.requests = [running for running in state.requests if running is not batches]

    # ---- connections and identity

    def _open(self, state: BrokerState) -> None:
        if not state.is_connecting:
            state.is_connecting = True
            self._spawn(self._connect(state), lambda: setattr(state, "is_connecting", False))

    async def _connect(self, state: BrokerState) -> None:
        try:
            state.version = await self._cluster.version(state.node, ProduceRequest.KEY)
            state.failures = 0
        except Unsupported as why:
            self._apply(self._results.abandon(why, untried=True))
        except AuthenticationFailed as why:  # another attempt fails, too
            state.failures += 1
            self._apply(self._results.abandon(why))
            await asyncio.sleep(self._pause_ms(state.failures) / 1000)
        except KafkaError as why:
            state.failures += 1
            self._results.note(state.node, why)
            self._cluster.request_refresh()
            await asyncio.sleep(self._pause_ms(state.failures) / 1000)
        finally:
            state.is_connecting = False
        self.pump()

    def identify(self) -> None:
        """Request a producer id if one is needed and missing, and transactions do not assign it."""
        sequences = self._accumulator.sequences
        if self._accumulator.transaction is not None:
            return  # the transaction coordinator assigns it
        if sequences is not None and sequences.producer is None and not self._is_requesting_id:
            self._is_requesting_id = True
            self._spawn(self._request_producer_id(), lambda: setattr(self, "_is_requesting_id", False))

    async def _request_producer_id(self) -> None:
        try:
            answer: InitProducerIdResponse = await self._cluster.send_request_until(
                AnyNode(),
                InitProducerIdRequest(transaction_timeout_ms=INT32_MAX),
                lambda answer: (answer.error_code,),
                what="getting a producer id",
            )
            if answer.error_code:
                raise BrokerError(answer.error_code, "getting a producer id")
            self._accumulator.identify(answer.producer_id, answer.producer_epoch)
            _log.info("producer id", id=answer.producer_id, epoch=answer.producer_epoch)
        except TimedOut as why:
            _log.warning("no producer id yet", why=str(why))
        except KafkaError as why:
            self._apply(self._results.abandon(why, untried=True))
            await asyncio.sleep(self._config.retry_backoff_max_ms / 1000)
        finally:
            self._is_requesting_id = False
        self.pump()

    # ---- one request

    async def _send(self, state: BrokerState, version: int, batches: list[Batch]) -> None:
        config, transaction = self._config, self._accumulator.transaction
        added_by_client = transaction is not None and transaction.version < BROKERS_ADD
        request_message = request(
            batches,
            config.required_acks,
            config.request_timeout_ms,
            min(version, ADDED_BY_CLIENT_VERSION_MAX) if added_by_client else version,
            self._cluster.metadata.topic_id,
            config.transactional_id,
        )
        limit = ADDED_BY_CLIENT_VERSION_MAX if added_by_client else version_max(request_message)
        try:
            answer: ProduceResponse | None = await self._cluster.send_request(
                state.node, request_message, version_max=limit
            )
        except KafkaError as why:
            self._finish(state, batches)
            state.version = None
            self._apply(self._results.unanswered(batches, why, self.now_ms()))
        else:
            self._finish(state, batches)
            if answer is None:
                self._results.sent(batches)
            else:
                pairs = list(answers(batches, request_message, answer, self._cluster.metadata.topic_id))
                self._take_leader_hints(pairs, answer)
                brokers = self._cluster.metadata.brokers
                self._apply(self._results.answered(pairs, self._broker(state.node), brokers, self.now_ms()))
        self._freed()
        self.pump()

    def _take_leader_hints(self, pairs: Iterable[Pair], answer: ProduceResponse) -> None:
        """The leaders, with their addresses, that the broker names beside an error (KIP-951)."""
        if answer.node_endpoints:
            self._cluster.add_brokers(answer.node_endpoints)
        for batch, part in pairs:
            leader = part.current_leader if part is not None and part.error_code else None
            if leader is not None and leader.leader_id >= 0:
                self._cluster.take_leader_hint(batch.queue.partition, leader.leader_id, leader.leader_epoch)

    def _apply(self, after: Effects) -> None:
        """Log what happened to batches, free the memory of failed ones, refresh stale metadata."""
        for text, batch in after.notes:
            _log.info(text, partition=str(batch.queue.partition), records=batch.count)
        for batch in after.failed:
            assert isinstance(batch.outcome, Failed)
            if batch.outcome.cause is self._accumulator.aborting:
                batch.reported.update(range(batch.count))  # the caller aborted, or gets the failure of the transaction
                continue
            _log.warning(
                "records were not delivered",
                partition=str(batch.queue.partition),
                records=batch.count,
                maybe_written=batch.outcome.maybe_written,
                cause=str(batch.outcome.cause),
            )
        self._unreported.extend(after.failed)
        for batch in after.failed:
            self.on_failed(batch)
        if after.failed:
            self._freed()
        if after.stale:
            self._cluster.request_refresh()

    def abort(self, why: KafkaError) -> None:
        """Fail the batches that are not on the wire; those on the wire fail too unless their response has no error."""
        self._apply(self._results.abort(why))
        self.look()

    def _pause_ms(self, failures: int) -> float:
        config = self._config
        return wait_ms(failures, config.retry_backoff_ms, config.retry_backoff_max_ms, random.random())

    def _broker(self, node: int) -> str:
        known = self._cluster.metadata.brokers.get(node)
        return str(known) if known is not None else str(node)

    # ---- stop

    def take_unreported(self) -> DeliveryFailed | None:
        """The first failure that no caller has got; all failures count as reported after the call, but those that a
        caller is about to get: it may be cancelled."""
        first = next((batch for batch in self._unreported if batch.is_unreported), None)
        failure = None if first is None else first_unreported(first)
        notified = [batch for batch in self._unreported if batch.report_all()]
        self._unreported = deque(notified, maxlen=FAILURES_KEPT_MAX)
        return failure

    async def stop(self, why: KafkaError) -> None:
        """Fail all undelivered batches and end all requests."""
        self._closed = True
        if self._handle is not None:
            self._handle.cancel()
        after = self._results.abandon(why)
        self._apply(after)
        if after.failed:
            records = sum(batch.count for batch in after.failed)
            _log.warning("the producer was closed before all records were delivered", records=records)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
