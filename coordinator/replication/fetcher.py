"""Copies partitions from one leader: one connection, one fetch session, one task.

Laws
    RF2 A partition that is followed anew, or again after a pause, is requested at once, also while a fetch waits at
        the leader: the next request of the session ends that wait.
    RF3 What fails for one partition pauses that one; what fails for the connection is reported, and tried again with
        growing waits until a fetch is answered and its answer is handled. Nothing ends the task but `stop`.
    RF5 Truncations are written to the medium in a thread, those of one answer together. They wait for no other answer.
    RF6 A throttled partition that lags is requested only while the follower's quota is not exceeded; others do not wait
        for it.
    RF4 The next fetch leaves when the records of the last one are appended: it acknowledges them, so that acks=all
        takes one round trip.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import structlog

from rota.coordinator.metadata.repeated_warning import RepeatedWarning
from rota.coordinator.replica.follower import RetryLater, after_bounds
from rota.coordinator.replica.follower_log import StartedTruncation
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.replication_throttle import ReplicationThrottle
from rota.coordinator.replication.bounds import Bounds, leader_bounds
from rota.coordinator.replication.fetch_responses import Outcome, apply_response, finish, perform_action
from rota.coordinator.replication.fetch_session import FollowerSession, Key, SessionRequest
from rota.coordinator.replication.fetch_states import FetchStates
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData, ReplicaState
from rota.transport.connection import Connection
from rota.transport.errors import KafkaError, TimedOut, Unreachable

log = structlog.get_logger("rota.replication")

IN_FLIGHT_MAX: Final = 2  # the second ends the wait of the first
RECONNECT_MS_MIN: Final = 20
RECONNECT_DOUBLINGS_MAX: Final = 10


class FetcherStops(KafkaError):
    """The fetcher closes its connection itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """Kafka's properties replica.fetch.* and replica.socket.timeout.ms.

    `sends_high_watermark` makes the leader answer when a high watermark moves, so that consumers of this follower see
    new records soon.
    """

    partition_bytes_max: int = 1 << 20
    response_bytes_max: int = 10 << 20
    bytes_min: int = 1
    wait_ms_max: int = 500
    backoff_ms_max: int = 1000
    timeout_ms: int = 30_000
    sends_high_watermark: bool = False


class Fetcher:
    """`open_connection` connects to the leader (raises KafkaError); `replica` returns this broker's id and epoch.

    `on_unreachable` is called with the leader's id when no connection could be opened, or when it was lost.
    """

    def __init__(
        self,
        leader_id: int,
        open_connection: Callable[[], Awaitable[Connection]],
        replica: Callable[[], ReplicaState],
        settings: FetchSettings,
        on_unreachable: Callable[[int], None],
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        self.leader_id = leader_id
        self._open_connection, self._replica = open_connection, replica
        self._settings, self._on_unreachable = settings, on_unreachable
        self._throttle = throttle
        self._loop = asyncio.get_running_loop()
        self._followed = FetchStates(settings.backoff_ms_max)
        self._session = FollowerSession()
        self._requests = self._failures = 0  # failures: since the last answer that was handled
        self._resumes: dict[Key, asyncio.TimerHandle] = {}
        self._event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._without_bounds = RepeatedWarning(log.bind(leader=leader_id), "A leader does not say where its logs start")
        self._is_logged = False  # the failure that ends the connection

    def __len__(self) -> int:
        return len(self._followed)

    def follow(self, partition: Partition) -> None:
        """Copy that partition from now on. Call it again when its leader epoch has changed."""
        if not self._followed.follow(partition, self._requests + 1):
            return
        self._cancel_resume((partition.topic_id, partition.index))
        self._event.set()
        if self._task is None:
            self._task = self._loop.create_task(self._run(), name=f"fetcher of broker {self.leader_id}")

    def unfollow(self, key: Key) -> None:
        """Copy it no longer."""
        self._cancel_resume(key)
        self._followed.unfollow(key)
        self._event.set()

    def retry(self) -> None:
        """Connect now if a pause before the next attempt is under way: the leader has registered again."""
        self._event.set()

    async def stop(self) -> None:
        """Copy nothing more and close the connection."""
        for key in list(self._resumes):
            self._cancel_resume(key)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # ---- the connection

    async def _run(self) -> None:
        while True:
            while not self._followed:
                await self._next_event()
            try:
                await self._use(await self._open_connection())
                continue
            except (Unreachable, TimedOut) as error:
                self._report(error)
                self._on_unreachable(self.leader_id)
            except KafkaError as error:
                self._report(error)
            except Exception as mistake:  # noqa: BLE001  # one mistake must not end replication
                emit = log.debug if self._is_logged else log.error
                emit("Fetching failed unexpectedly", leader=self.leader_id, exc_info=mistake)
            self._is_logged = False
            self._failures += 1
            await self._pause_before_connecting()

    def _report(self, error: KafkaError) -> None:
        emit = log.debug if self._failures or self._is_logged else log.warning
        emit("No connection to a leader", leader=self.leader_id, reason=str(error))

    async def _use(self, connection: Connection) -> None:
        try:
            await self._fetch(connection)
        finally:
            connection.end(FetcherStops("the fetcher closes the connection"))
            await connection.closed()

    async def _pause_before_connecting(self) -> None:
        doublings = min(self._failures - 1, RECONNECT_DOUBLINGS_MAX)
        pause_ms = min(RECONNECT_MS_MIN << doublings, self._settings.backoff_ms_max)
        self._event.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), pause_ms / 1000)

    async def _next_event(self) -> None:
        self._event.clear()
        await self._event.wait()

    # ---- requests

    async def _fetch(self, connection: Connection) -> None:
        """Fetch until nothing is followed any more. Raises KafkaError when the connection is lost."""
        self._session = FollowerSession()
        self._followed.begin_anew()
        in_flight: deque[tuple[int, asyncio.Future[bytes]]] = deque()
        api_codec = connection.codec_for(FetchRequest)
        while in_flight or self._followed:
            if self._has_request_to_send(len(in_flight)):
                answer = connection.send(api_codec, self._request(), self._settings.timeout_ms / 1000)
                answer.add_done_callback(self._response_completed)
                in_flight.append((self._requests, answer))
            if in_flight and in_flight[0][1].done():
                number, answer = in_flight.popleft()
                response: FetchResponse = connection.read(api_codec, answer.result())
                await self._answered(connection, number, response)
            elif not self._has_request_to_send(len(in_flight)):
                await self._next_event()

    def _response_completed(self, answer: asyncio.Future[bytes]) -> None:
        if not answer.cancelled():
            answer.exception()  # later responses are not awaited when the connection is lost
        self._event.set()

    def _has_request_to_send(self, in_flight: int) -> bool:
        for key in self._followed.unfetchable():
            self._pause(key)
        self._hold_back()
        if not in_flight:
            return self._followed.has_active
        return self._followed.has_changes and in_flight < IN_FLIGHT_MAX and self._session.is_established

    def _request(self) -> FetchRequest:
        self._requests += 1
        if not self._session.is_established:
            positions = self._positions(self._followed.all_active())
            wait_ms = self._settings.wait_ms_max if self._session.is_refused else 0
            return self._fetch_request(self._session.full(positions), wait_ms)
        changed, removed = self._followed.take_changes()
        return self._fetch_request(
            self._session.incremental(self._positions(changed), removed), wait_ms=self._settings.wait_ms_max
        )

    def _fetch_request(self, session: SessionRequest, wait_ms: int) -> FetchRequest:
        return FetchRequest(
            replica_state=self._replica(),
            max_wait_ms=wait_ms,
            min_bytes=self._settings.bytes_min,
            max_bytes=self._settings.response_bytes_max,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten,
        )

    def _positions(self, partitions: Mapping[Key, Partition]) -> dict[Key, FetchPartition]:
        return {key: self._position(partition) for key, partition in partitions.items()}

    def _position(self, partition: Partition) -> FetchPartition:
        of = partition.log
        position = FetchPartition(
            partition=partition.index,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=of.log_end_offset,
            last_fetched_epoch=of.latest_epoch,
            log_start_offset=of.log_start_offset,
            partition_max_bytes=self._settings.partition_bytes_max,
        )
        if self._settings.sends_high_watermark:
            position.high_watermark = partition.state.high_watermark
        return position

    # ---- answers

    async def _answered(self, connection: Connection, number: int, response: FetchResponse) -> None:
        if response.error_code:
            log.debug("Fetch session ends", leader=self.leader_id, error=ErrorCode.of(response.error_code).name)
            self._session.lost()
            self._followed.begin_anew()
            return
        self._session.answered(response.session_id)
        beyond, truncations, is_of_use = list[Partition](), list[StartedTruncation](), False
        for topic in response.responses:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.partition_index)
                partition = self._followed.answered(key, number)
                if partition is None:
                    continue
                outcome = apply_response(partition, answer, truncations)
                self._measure(key, partition, answer)
                if outcome is Outcome.BEYOND:
                    beyond.append(partition)
                else:
                    self._note(key, outcome)
                    is_of_use = True
        await self._finish(truncations)
        if is_of_use:
            self._failures = 0
        if beyond:
            await self._finish(await self._look_for_bounds(connection, beyond))
        self._failures = 0

    def _measure(self, key: Key, partition: Partition, answer: PartitionData) -> None:
        """Count the bytes of the answer, and how far the replica lags now."""
        if self._throttle is None or answer.error_code or partition.offline is not None:
            return
        if answer.records:
            self._throttle.record(partition.topic, partition.index, len(answer.records))
        self._followed.note_lag(key, answer.high_watermark - partition.log.log_end_offset)

    async def _finish(self, truncations: list[StartedTruncation]) -> None:
        """RF5. Nothing of the next answer is taken before these logs are cut."""
        if truncations:
            await finish(truncations)
        for truncation in truncations:
            self._note((truncation.partition.topic_id, truncation.partition.index), Outcome.MOVED)

    def _note(self, key: Key, outcome: Outcome) -> None:
        if outcome is Outcome.FAILED:
            self._pause(key)
            return
        self._followed.succeeded(key)
        if outcome is Outcome.CUT:
            return
        if outcome is Outcome.MOVED or self._settings.sends_high_watermark:
            self._followed.add_to_request(key)

    async def _look_for_bounds(self, connection: Connection, partitions: list[Partition]) -> list[StartedTruncation]:
        """Ask where the leader's logs start and end, whose offsets it does not have. Raises KafkaError.

        Return what follows for the logs here.
        """
        number, replica_id, seconds = self._requests, self._replica().replica_id, self._settings.timeout_ms / 1000
        try:
            bounds = await leader_bounds(connection, partitions, replica_id, seconds)
        except Exception as why:  # RF3. They wait, not what else is fetched from that leader
            self._without_bounds.failed(repr(why))
            self._is_logged = True
            self._take_bounds(partitions, [ErrorCode.NETWORK_EXCEPTION] * len(partitions), number)
            raise
        self._without_bounds.succeeded()
        return self._take_bounds(partitions, bounds, number)

    def _take_bounds(
        self, partitions: Sequence[Partition], bounds: Sequence[Bounds], number: int
    ) -> list[StartedTruncation]:
        truncations = list[StartedTruncation]()
        for partition, found in zip(partitions, bounds, strict=True):
            key = (partition.topic_id, partition.index)
            if self._followed.answered(key, number) is not partition:
                continue  # it is led by another broker or in another epoch by now
            if isinstance(found, ErrorCode):
                self._note(key, perform_action(partition, RetryLater(found), truncations))
            else:
                of = partition.log
                action = after_bounds(*found, of.log_start_offset, of.log_end_offset)
                self._note(key, perform_action(partition, action, truncations))
        return truncations

    # ---- pauses

    def _pause(self, key: Key) -> None:
        self._resume_in(key, self._followed.pause(key))

    def _hold_back(self) -> None:
        """RF6."""
        if self._throttle is None or not (wait_ms := self._throttle.wait_ms):
            return
        for key, partition in self._followed.lagging():
            if self._throttle.is_held_back(partition.topic, partition.index, is_in_sync=False):
                self._followed.hold_back(key)
                self._resume_in(key, wait_ms)

    def _resume_in(self, key: Key, wait_ms: int) -> None:
        self._cancel_resume(key)
        self._resumes[key] = self._loop.call_later(wait_ms / 1000, self._resume, key)

    def _resume(self, key: Key) -> None:
        del self._resumes[key]
        if key in self._followed:
            self._followed.resume(key)
            self._event.set()

    def _cancel_resume(self, key: Key) -> None:
        timer = self._resumes.pop(key, None)
        if timer is not None:
            timer.cancel()
