"""Writes markers to the leaders of partitions: one request to a broker at a time, with the markers of all transactions.

Laws
    TXC5  A marker is tried again until its partition has it, through changes of the leader, for as long as the
        coordinator leads the shard. One partition that cannot be written delays no other.
    TXC6  A partition that does not exist (any more) needs no marker, nor one that has a newer epoch of the producer. It
        does not exist if the metadata store says so: this broker may lead the shard before it has read a new topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import structlog

from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.runtime.coordinator import TimerService
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.events import TopicPartition
from rota.coordinator.transaction_coordinator import MarkerJob
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rota.transport.errors import KafkaError

log = structlog.get_logger("rota.coordinator")

RETRY_MS: Final = 50
_TIMER: Final = "retry of transaction markers"
_NONE: Final = ErrorCode.NONE
# the partition has a newer epoch of this producer, or a message format without transactions
NOT_NEEDED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})


class Entry(NamedTuple):
    """The partitions of one job that one broker leads."""

    job: MarkerJob
    partitions: tuple[TopicPartition, ...]


Write = Callable[[WriteTxnMarkersRequest], WriteTxnMarkersResponse | DelayedReply[WriteTxnMarkersResponse]]


class TransactionMarkers:
    """The MarkerSender of a broker. `write` writes to its own partitions; `send_request` sends to another broker."""

    def __init__(
        self,
        topics: Topics,
        *,
        broker_id: int,
        write: Write,
        send_request: Callable[[int, Any], Awaitable[Any]],
        timers: TimerService,
        now_ms: Callable[[], int],
        tick_queue: Callable[[Callable[[], None]], object],
    ) -> None:
        self._topics, self._broker_id, self._write, self._send_request = topics, broker_id, write, send_request
        self._timers, self._now_ms, self._tick_queue = timers, now_ms, tick_queue
        self._queues: dict[int, list[Entry]] = {}  # by leader
        self._retries: list[Entry] = []
        self._unknown: list[Entry] = []  # partitions that this broker has not read from the store
        self._requests: dict[int, asyncio.Task[None]] = {}  # to other brokers
        self._is_scheduled = self._is_stopped = False

    def submit(self, job: MarkerJob) -> None:
        """Begin a job: its markers are sent at the end of this tick of the loop."""
        self._route(Entry(job, job.markers.partitions))

    async def stop(self) -> None:
        """Send nothing more."""
        self._is_stopped = True
        self._timers.cancel(_TIMER)
        self._queues, self._retries, self._unknown = {}, [], []
        requests = list(self._requests.values())
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)

    def _route(self, entry: Entry) -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        missing: list[TopicPartition] = []
        for partition in entry.partitions:
            state = self._topics.partition(*partition)
            if state is None:
                missing.append(partition)
            else:
                by_leader.setdefault(state.leader, []).append(partition)
        for leader, partitions in by_leader.items():
            if leader == self._broker_id or leader in self._topics.brokers:
                self._queues.setdefault(leader, []).append(Entry(entry.job, tuple(partitions)))
            else:  # no leader, or it is dead
                self._retry(Entry(entry.job, tuple(partitions)))
        if missing:
            self._unknown.append(Entry(entry.job, tuple(missing)))
        if (self._queues or self._unknown) and not self._is_scheduled:
            self._is_scheduled = True
            self._tick_queue(self._send)

    def _retry(self, entry: Entry) -> None:
        if not self._retries:
            self._timers.at(_TIMER, self._now_ms() + RETRY_MS, self._route_again)
        self._retries.append(entry)

    def _route_again(self) -> None:
        retries, self._retries = self._retries, []
        for entry in retries:
            if entry.job.is_current():
                self._route(entry)

    # ---- partitions that are not in the image

    async def _look_up(self, entries: list[Entry]) -> None:
        """TXC6. Read the topics from the store; a partition that it does not have counts as written."""
        current = [entry for entry in entries if entry.job.is_current()]
        unread: set[str] = set()
        for name in sorted({name for entry in current for name, _ in entry.partitions}):
            try:
                await self._topics.refresh(name)
            except StoreFailed as failure:
                log.info("Topic of a marker was not read", topic=name, reason=str(failure))
                unread.add(name)
            except Exception as failure:  # noqa: BLE001  # TXC5: whatever it is, no marker is lost
                log.error("Topic of a marker was not read; unexpected exception", topic=name, reason=repr(failure))
                unread.add(name)
        for job, partitions in () if self._is_stopped else current:
            known = tuple(partition for partition in partitions if self._topics.partition(*partition) is not None)
            again = tuple(partition for partition in partitions if partition[0] in unread and partition not in known)
            if known:
                self._route(Entry(job, known))
            if again:
                self._retry(Entry(job, again))
            if deleted := set(partitions).difference(known, again):
                job.written(deleted)

    # ---- requests

    def _send(self) -> None:
        self._is_scheduled = False
        unknown, self._unknown = self._unknown, []
        if unknown:
            eager_tasks.start(self._look_up(unknown))
        for leader in list(self._queues):
            if leader == self._broker_id:
                self._send_locally(self._take(leader))
            elif leader not in self._requests:
                self._requests[leader] = asyncio.get_running_loop().create_task(self._send_to(leader))

    def _take(self, leader: int) -> list[Entry]:
        return [entry for entry in self._queues.pop(leader, ()) if entry.job.is_current()]

    def _send_locally(self, entries: list[Entry]) -> None:
        if not entries:
            return
        try:
            reply = self._write(request_of(entries))
        except Exception as failure:  # noqa: BLE001  # TXC5: whatever it is, no marker is lost
            _log_failure(self._broker_id, failure)
            self._finish(entries, None)
            return
        if isinstance(reply, DelayedReply):
            reply.then(lambda response: self._finish(entries, response))
        else:
            self._finish(entries, reply)

    async def _send_to(self, leader: int) -> None:
        try:
            while entries := self._take(leader):
                try:
                    response = await self._send_request(leader, request_of(entries))
                except Exception as failure:  # noqa: BLE001  # TXC5: whatever it is, no marker is lost
                    _log_failure(leader, failure)
                    response = None
                self._finish(entries, response)
        finally:
            del self._requests[leader]

    def _finish(self, entries: list[Entry], response: WriteTxnMarkersResponse | Exception | None) -> None:
        errors = errors_of(response) if isinstance(response, WriteTxnMarkersResponse) else {}
        for entry in entries:
            producer_id = entry.job.markers.producer.producer_id
            written: list[TopicPartition] = []
            again: list[TopicPartition] = []
            for partition in entry.partitions:
                error = errors.get((producer_id, partition), ErrorCode.NETWORK_EXCEPTION)
                (written if error is _NONE or error in NOT_NEEDED else again).append(partition)
                if error in NOT_NEEDED:
                    log.warning("Marker is not needed", producer_id=producer_id, partition=partition, code=error.name)
            if again:
                self._retry(Entry(entry.job, tuple(again)))
            if written:
                entry.job.written(written)


def _log_failure(broker: int, failure: Exception) -> None:
    if isinstance(failure, KafkaError):
        log.info("Markers were not sent", broker=broker, reason=str(failure))
    else:
        log.error("Markers were not sent; unexpected exception", broker=broker, exc_info=failure)


def request_of(entries: Iterable[Entry]) -> WriteTxnMarkersRequest:
    """Return the request with the markers of these entries."""
    by_job: dict[int, tuple[MarkerJob, dict[str, list[int]]]] = {}
    for job, partitions in entries:
        topics = by_job.setdefault(id(job), (job, {}))[1]
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
    return WriteTxnMarkersRequest(markers=tuple(_marker(job, topics) for job, topics in by_job.values()))


def _marker(job: MarkerJob, topics: dict[str, list[int]]) -> WritableTxnMarker:
    markers = job.markers
    return WritableTxnMarker(
        producer_id=markers.producer.producer_id,
        producer_epoch=markers.producer.epoch,
        transaction_result=markers.is_commit,
        topics=tuple(
            WritableTxnMarkerTopic(name=name, partition_indexes=tuple(indexes)) for name, indexes in topics.items()
        ),
        coordinator_epoch=job.coordinator_epoch,
        transaction_version=markers.client_version,
    )


def errors_of(response: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], ErrorCode]:
    """Return the error of each producer id and partition."""
    return dict(_errors(response))


def _errors(response: WriteTxnMarkersResponse) -> Iterator[tuple[tuple[int, TopicPartition], ErrorCode]]:
    for marker in response.markers:
        for topic in marker.topics:
            for each in topic.partitions:
                yield (marker.producer_id, (topic.name, each.partition_index)), ErrorCode.of(each.error_code)
