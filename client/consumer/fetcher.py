"""Fetches from all leaders of the assigned partitions, ahead of the user. The requests are made by fetch_session.py.

Laws
    The buffer is bounded: at most two responses of each broker, the one being taken and the next one, which is fetched
    meanwhile. A paused partition is not fetched; it keeps its own bytes.
    A record that was taken is never returned again, and none is omitted, whatever is cancelled.
    A failed fetch is retried with growing waits; only errors that are not retriable are raised.
    A cancelled fetch counts as failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from rota.client.config import ConsumerConfig
from rota.client.consumer.fetch_buffer import FetchBuffer, FetchOffset
from rota.client.consumer.fetch_response import PartitionResults
from rota.client.consumer.fetch_session import SESSION_ERRORS, FetchPartition, FetchSession, SessionRequest
from rota.client.consumer.pauses import Pauses
from rota.client.consumer.positions import Position, Positions
from rota.client.consumer.sources import Source, Sources
from rota.client.errors import BrokerError, KafkaError, TimedOut, Unreachable
from rota.client.log import logger
from rota.client.network.cluster import Cluster
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.network.metadata import Metadata
from rota.client.types import ConsumerRecord, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import FetchRequest, FetchResponse
from rota.protocol.wire import UUID_ZERO

NAMES_UNTIL: Final = 12  # the last version that names topics by their names
LANE: Final = "fetch"
ISOLATION: Final = {"read_uncommitted": 0, "read_committed": 1}
_log = logger("rota.client.fetcher")

FetchPartitions = dict[TopicPartition, FetchPartition]


class Fetcher:
    """`start()`, then `take` and `wait` in turn; `await close()`. `forget(partitions)`: what was taken of them belongs
    to a topic that was deleted."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: Positions,
        forget: Callable[[tuple[TopicPartition, ...]], None] = lambda _: None,
    ) -> None:
        self._cluster, self._config, self._positions, self._forget = cluster, config, positions, forget
        self._buffer = FetchBuffer(positions)
        self._sources = Sources(config.metadata_max_age_ms)
        self._pauses = Pauses(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._results = PartitionResults(config, positions, self._buffer, self._sources, self._pauses, cluster)
        self._sessions: dict[int, FetchSession] = {}
        self._deleted_ids: dict[str, bytes] = {}  # of topics that were created again: a broker may still name them
        self._fetches: dict[int, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._wakeup = asyncio.Event()
        self._is_woken = False
        self._answers = 0
        self._unlisten: Callable[[], None] | None = None

    @property
    def held_bytes(self) -> int:
        """The memory of the records that the user has not taken."""
        return self._buffer.held_bytes

    def start(self) -> None:
        """Start the tasks; positions may still be empty."""
        self._loop = asyncio.get_running_loop()
        self._unlisten = self._cluster.on_change(self._changed)
        self._send_fetches()

    async def close(self) -> None:
        """Cancel the fetches and discard the buffer."""
        self._loop = None
        if self._unlisten is not None:
            self._unlisten()
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._fetches.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._buffer.clear()
        self._wakeup.set()

    def take(self, records_max: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return up to `records_max` buffered records and move the positions. Never waits.

        Raises each failure of a fetch of an assigned partition once: OffsetOutOfRange and NoOffset
        (auto_offset_reset=none), CorruptRecords, LogTruncated, BrokerError. A reset by policy is not an error: it marks
        the position. The lookup of an unknown topic is repeated.
        """
        try:
            return self._buffer.take(records_max)
        finally:
            self._send_fetches()

    async def wait(self) -> None:
        """Wait until `take` would return records or raise, `wake` is called, or positions are missing."""
        while not self._is_woken and not self._buffer.has_any():
            if self._positions.without_offset():
                await asyncio.sleep(0)  # a loop of calls lets other tasks run
                break
            self._wakeup.clear()
            await self._wakeup.wait()
        self._is_woken = False

    def wake(self) -> None:
        """End `wait` and plan the fetches again: positions, pauses or assignments have changed."""
        self._is_woken = True
        self._wakeup.set()
        self._note_topics()
        self._send_fetches()

    # what to fetch

    def _note_topics(self) -> None:
        """C14. A position belongs to the topic of the time when it was set, also if it is paused and not fetched."""
        for partition in self._positions.assigned if self._loop is not None else ():
            position = self._positions.of(partition)
            if position.offset is not None:
                self._note_topic(partition, position)

    def _note_topic(self, partition: TopicPartition, position: Position) -> None:
        topic_id = self._cluster.metadata.topic_id(partition.topic)
        if position.topic_id == UUID_ZERO and topic_id not in (None, self._deleted_ids.get(partition.topic)):
            position.topic_id = topic_id or UUID_ZERO

    def _changed(self, metadata: Metadata) -> None:
        """C14. Reset the positions in a topic that was deleted and created again."""
        for partition in self._positions.assigned:
            before, now = self._positions.of(partition).topic_id, metadata.topic_id(partition.topic)
            if now not in (None, before, self._deleted_ids.get(partition.topic)) and before != UUID_ZERO:
                policy, self._deleted_ids[partition.topic] = self._config.auto_offset_reset, before
                _log.warning("a topic was deleted and created again", partition=str(partition), goes_on_at=policy)
                self._positions.reset(partition, policy)
                self._forget((partition,))
                self._wakeup.set()
        self._send_fetches()

    def _send_fetches(self) -> None:
        """Send a fetch to every broker that leads a partition to fetch and has no fetch in flight."""
        if self._loop is None:
            return
        self._buffer.discard_stale()
        now_ms = self._now_ms()
        for node, (to_fetch, wait_ms) in self._plan(now_ms).items():
            if to_fetch:
                self._fetches[node] = fetch = self._loop.create_task(self._fetch(node, to_fetch, wait_ms))
                fetch.add_done_callback(partial(self._fetch_ended, node))
        self._set_timer(now_ms)

    def _plan(self, now_ms: int) -> dict[int, tuple[FetchPartitions, int]]:
        """Return the partitions to fetch from each broker, and the ms that the broker may wait: at most until the pause
        of one of its partitions ends."""
        metadata = self._cluster.metadata
        busy = self._fetches.keys() | self._buffer.full_nodes()
        if metadata.brokers and busy.issuperset(metadata.brokers):
            return {}
        plan: dict[int, tuple[FetchPartitions, int]] = {}
        lost = False
        for partition, position in self._positions.fetchable():
            place = self._buffer.next_fetch(partition, position)
            if place is None:
                continue
            source, pause_ms = self._sources.of(partition, metadata, now_ms), self._pauses.left_ms(partition, now_ms)
            if position.topic_id != UUID_ZERO and metadata.topic_id(partition.topic) not in (None, position.topic_id):
                source = None  # C14: the metadata are those of a broker that has not read of its topic yet
            if source is None:
                lost = True
                if not pause_ms:
                    self._pauses.failed(partition, now_ms)
                continue
            if source.node in busy or self._pauses.is_paused(source.node, now_ms):
                continue
            to_fetch, wait_ms = plan.get(source.node) or ({}, self._config.fetch_max_wait_ms)
            if pause_ms:
                wait_ms = min(wait_ms, pause_ms)
            else:
                to_fetch[partition] = self._fetch_partition(partition, place, source, position)
            plan[source.node] = to_fetch, wait_ms
        if lost:
            self._cluster.request_refresh()
        return plan

    def _fetch_partition(
        self, partition: TopicPartition, place: FetchOffset, source: Source, position: Position
    ) -> FetchPartition:
        self._note_topic(partition, position)
        return FetchPartition(
            place.offset,
            self._config.max_partition_fetch_bytes,
            source.leader_epoch,
            place.last_epoch,
            self._cluster.metadata.topic_id(partition.topic) or UUID_ZERO,
            position.position_epoch,
        )

    def _set_timer(self, now_ms: int) -> None:
        """Plan again when the first pause ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        until = self._pauses.next_end(now_ms)
        if until is not None and self._loop is not None:
            # a whole number of ms, rounded down, must not be reached before its time
            self._timer = self._loop.call_at((until + 1) / 1000, self._send_fetches)

    def _now_ms(self) -> int:
        assert self._loop is not None, "started"
        return int(self._loop.time() * 1000)

    # one fetch

    async def _fetch(self, node: int, to_fetch: FetchPartitions, wait_ms: int) -> None:
        session = self._sessions.setdefault(node, FetchSession())
        by_id = all(requested.topic_id != UUID_ZERO for requested in to_fetch.values())
        try:
            answer = await self._cluster.send_request(
                node,
                self._request(session.next_request(to_fetch, by_id=by_id), wait_ms),
                timeout_ms=self._config.request_timeout_ms + self._config.fetch_max_wait_ms,
                version_max=None if by_id else NAMES_UNTIL,
                lane=LANE,
            )
            self._answered(node, session, to_fetch, answer)
        except (Unreachable, TimedOut) as why:
            _log.info("a fetch failed", broker=node, why=str(why))
            session.failed()
            self._pauses.failed(node, self._now_ms())
            self._forget_replicas(to_fetch)
            self._cluster.request_refresh()
        except Exception as why:  # noqa: BLE001 - this task is not awaited: `take` raises it
            session.failed()
            self._failed(to_fetch, why)

    def _fetch_ended(self, node: int, fetch: asyncio.Task[None]) -> None:
        """Allow the next fetch of this broker, however it ended; after a cancellation when the backoff is over."""
        del self._fetches[node]
        if fetch.cancelled() and node in self._sessions:
            self._sessions[node].failed()
        if fetch.cancelled() and self._loop is not None:
            self._pauses.failed(node, self._now_ms())
        self._wakeup.set()
        self._send_fetches()

    def _request(self, session: SessionRequest, wait_ms: int) -> FetchRequest:
        config = self._config
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=ISOLATION[config.isolation_level],
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten,
            rack_id=config.client_rack,
        )

    def _answered(self, node: int, session: FetchSession, to_fetch: FetchPartitions, answer: FetchResponse) -> None:
        now_ms = self._now_ms()
        if not session.handle_response(answer.error_code, answer.session_id):
            self._refused(node, to_fetch, answer.error_code)
            return
        self._pauses.succeeded(node)
        if answer.throttle_time_ms > 0:
            self._pauses.pause(node, now_ms, answer.throttle_time_ms)
        if answer.node_endpoints:
            self._cluster.add_brokers(answer.node_endpoints)
        self._answers += 1
        answered = set()
        names = {requested.topic_id: partition.topic for partition, requested in to_fetch.items()}
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                requested = to_fetch.get(partition)
                if requested is not None:
                    answered.add(partition)
                    session.store_ends(partition, data)
                    self._results.apply(node, partition, requested, data, self._answers, now_ms)
        for partition, ends in session.omitted(answered):
            self._results.unchanged(partition, to_fetch[partition], ends)

    def _refused(self, node: int, to_fetch: FetchPartitions, code: int) -> None:
        """Handle an error code of the whole response."""
        _log.info("a fetch was refused", broker=node, error=ErrorCode.of(code).name)
        if code in SESSION_ERRORS:
            return
        if error_action(FetchRequest.KEY, code) is ErrorAction.FATAL:
            self._failed(to_fetch, BrokerError(code, "fetching", broker=str(node)))
            return
        self._pauses.failed(node, self._now_ms())
        self._cluster.request_refresh()

    def _forget_replicas(self, to_fetch: FetchPartitions) -> None:
        for partition in to_fetch:
            self._sources.forget_replica(partition)

    def _failed(self, to_fetch: FetchPartitions, why: Exception) -> None:
        """Store an error that is not retriable: `take` raises it."""
        if not isinstance(why, KafkaError):
            _log.error("an answer could not be taken in", exc_info=why)
        for partition, requested in to_fetch.items():
            position = self._positions.find(partition)
            if (
                position is not None
                and position.position_epoch == requested.position_epoch
                and not self._buffer.keep_for_user(partition)
            ):
                self._buffer.fail(partition, why, requested.position_epoch)
