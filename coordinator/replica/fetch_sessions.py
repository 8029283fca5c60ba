"""Fetch sessions (KIP-227): after a full request, requests and responses contain only changed partitions.

Laws
    F1  An incremental response omits a partition only if the consumer was told its current state in this session.
    F2  A session's epoch increases by one with every request; a request of another epoch changes nothing.
    F3  A partition that returned records is read last in the session's next fetch, so that none starves.
    F14 A follower's request is answered at the latest when the next one of its session arrives.
    F4  Sessions are a bounded cache: a consumer without a place in it gets full responses, without a session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from rota.coordinator.replica.partition_lookup import Key
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:  # a broker that starts does not load the messages of an API before its first request
    from rota.protocol.messages.fetch import FetchPartition, PartitionData

NO_SESSION: Final = 0
FULL_EPOCH: Final = 0  # end the session, and begin a new one
FINAL_EPOCH: Final = -1  # end the session, and begin none
EPOCH_MAX: Final = 0x7FFF_FFFF
SESSION_ID_MAX: Final = 0x7FFF_FFFF
SESSIONS_MAX: Final = 1000  # max.incremental.fetch.session.cache.slots
SESSION_PARTITIONS_MAX: Final = 100_000
CACHED_PARTITIONS_MAX: Final = 1_000_000  # of all sessions together: some 300 MB
IDLE_EVICTION_MS: Final = 120_000  # Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS
NEVER_ANSWERED: Final = -1


@dataclass(slots=True, kw_only=True)
class SessionRequest:
    """The session part of a request. `partitions` keeps the order of the request, which is the order of reading."""

    partitions: dict[Key, FetchPartition]
    forgotten: Sequence[Key] = ()
    session_id: int = NO_SESSION
    epoch: int = FINAL_EPOCH
    by_id: bool = False


PartitionResponses = Sequence[tuple[Key, "PartitionData"]]


@dataclass(slots=True)
class Selected:
    """The responses that are sent, of all that were read."""

    error: ErrorCode
    session_id: int
    responses: PartitionResponses


@dataclass(slots=True)
class _Cached:
    """A partition of a session: its last request, and what was last answered."""

    request: FetchPartition
    high_watermark: int = NEVER_ANSWERED
    log_start_offset: int = NEVER_ANSWERED


@dataclass(slots=True)
class FetchSession:
    session_id: int
    by_id: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    partitions: dict[Key, _Cached] = field(default_factory=dict)
    waiting: Callable[[], None] | None = None  # answers the delayed request, if it does not mute its connection

    def update(self, request: SessionRequest) -> None:
        for key, partition in request.partitions.items():
            cached = self.partitions.get(key)
            if cached is None:
                self.partitions[key] = _Cached(partition)
                continue
            if cached.request.current_leader_epoch != partition.current_leader_epoch:
                cached.high_watermark = NEVER_ANSWERED  # answers of another epoch may not have counted
            cached.request = partition
        for key in request.forgotten:
            self.partitions.pop(key, None)

    def record(self, key: Key, response: PartitionData) -> bool:
        """Store the state of this response; return False if nothing has changed."""
        cached = self.partitions[key]
        is_new = response.diverging_epoch is not None or response.preferred_read_replica != -1
        if response.high_watermark != cached.high_watermark:
            cached.high_watermark, is_new = response.high_watermark, True
        if response.log_start_offset != cached.log_start_offset:
            cached.log_start_offset, is_new = response.log_start_offset, True
        if response.error_code:
            cached.high_watermark, is_new = NEVER_ANSWERED, True
        if response.records:
            self.partitions[key] = self.partitions.pop(key)
            is_new = True
        return is_new


class Refused:
    """The session does not exist, or has another epoch: nothing is read."""

    __slots__ = ("error",)
    is_unchanged: Final = None

    def __init__(self, error: ErrorCode) -> None:
        self.error = error

    def requested(self) -> Iterable[tuple[Key, FetchPartition]]:
        return ()

    def select(self, responses: PartitionResponses, now_ms: int) -> Selected:
        return Selected(self.error, NO_SESSION, ())


class SessionlessFetch:
    """Every partition is read and answered."""

    __slots__ = ("_partitions",)
    error: Final = ErrorCode.NONE
    is_unchanged: Final = None

    def __init__(self, partitions: dict[Key, FetchPartition]) -> None:
        self._partitions = partitions

    def requested(self) -> Iterable[tuple[Key, FetchPartition]]:
        return self._partitions.items()

    def select(self, responses: PartitionResponses, now_ms: int) -> Selected:
        return Selected(ErrorCode.NONE, NO_SESSION, responses)


class Full:
    """Every partition is read and answered, and stored as a new session if the cache has room."""

    __slots__ = ("_request", "_sessions")
    error: Final = ErrorCode.NONE
    is_unchanged: Final = None

    def __init__(self, sessions: FetchSessions, request: SessionRequest) -> None:
        self._sessions, self._request = sessions, request

    def requested(self) -> Iterable[tuple[Key, FetchPartition]]:
        return self._request.partitions.items()

    def select(self, responses: PartitionResponses, now_ms: int) -> Selected:
        partitions = self._request.partitions
        cached = {
            key: _Cached(partitions[key], response.high_watermark, response.log_start_offset)
            for key, response in responses
        }
        return Selected(ErrorCode.NONE, self._sessions.begin(cached, self._request.by_id, now_ms), responses)


class Incremental:
    """The session's partitions are read; those with something new are answered."""

    __slots__ = ("_epoch", "_session")
    error: Final = ErrorCode.NONE

    def __init__(self, session: FetchSession) -> None:
        self._session, self._epoch = session, session.epoch

    def requested(self) -> Iterable[tuple[Key, FetchPartition]]:
        return [(key, cached.request) for key, cached in self._session.partitions.items()]

    def is_unchanged(self, key: Key, high_watermark: int, log_start_offset: int) -> bool:
        """Return whether the last response of this partition had the same high watermark and log start."""
        cached = self._session.partitions.get(key)
        return (
            cached is not None
            and cached.high_watermark == high_watermark
            and cached.log_start_offset == log_start_offset
        )

    def wait(self, answer: Callable[[], None]) -> None:
        """Call `answer` when the session's next request arrives, so that both are answered in order (F14)."""
        self._session.waiting = answer

    def select(self, responses: PartitionResponses, now_ms: int) -> Selected:
        session = self._session
        if session.epoch != self._epoch:  # used on another connection while this request waited
            return Selected(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id, ())
        new = [(key, response) for key, response in responses if session.record(key, response)]
        return Selected(ErrorCode.NONE, session.session_id, new)


FetchContext = Refused | SessionlessFetch | Full | Incremental


def _draw_id() -> int:
    return int.from_bytes(os.urandom(8), "big") % SESSION_ID_MAX + 1


class FetchSessions:
    """The sessions of one broker, least recently used first. `slots_max` 0 switches sessions off."""

    def __init__(
        self,
        slots_max: int = SESSIONS_MAX,
        draw_id: Callable[[], int] = _draw_id,
        partitions_max: int = CACHED_PARTITIONS_MAX,
    ) -> None:
        self._slots_max, self._draw_id, self._partitions_max = slots_max, draw_id, partitions_max
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0
        self.cached_partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: SessionRequest, now_ms: int) -> FetchContext:
        """Return the context of a request. Errors such as FETCH_SESSION_ID_NOT_FOUND are in the context."""
        if request.epoch in (FULL_EPOCH, FINAL_EPOCH):
            self._end(request.session_id)
            return SessionlessFetch(request.partitions) if request.epoch == FINAL_EPOCH else Full(self, request)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.epoch:
            return Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != request.by_id:
            return Refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.waiting is not None:
            answer, session.waiting = session.waiting, None
            answer()
        return self._continue(session, request, now_ms)

    def begin(self, partitions: dict[Key, _Cached], by_id: bool, now_ms: int) -> int:
        """Create a session and return its id; NO_SESSION if the cache has no room."""
        if len(partitions) > SESSION_PARTITIONS_MAX or not self._make_room(len(partitions), now_ms):
            return NO_SESSION
        session_id = self._draw_id()
        while session_id in self._sessions:
            session_id = self._draw_id()
        self._sessions[session_id] = FetchSession(session_id, by_id, now_ms, now_ms, 1, partitions)
        self.cached_partitions += len(partitions)
        return session_id

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.cached_partitions -= len(session.partitions)

    def _continue(self, session: FetchSession, request: SessionRequest, now_ms: int) -> FetchContext:
        self._end(session.session_id)
        session.update(request)
        if not session.partitions:
            return SessionlessFetch(request.partitions)
        size = len(session.partitions)
        if size > SESSION_PARTITIONS_MAX or self.cached_partitions + size > self._partitions_max:
            return Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)  # the consumer sends a full request next
        self._sessions[session.session_id] = session
        self.cached_partitions += len(session.partitions)
        session.used_ms = now_ms
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        return Incremental(session)

    def _has_room(self, size_partitions: int) -> bool:
        fits = self.cached_partitions + size_partitions <= self._partitions_max
        return fits and len(self._sessions) < self._slots_max

    def _make_room(self, size_partitions: int, now_ms: int) -> bool:
        """Evict, if needed, a session that was unused for long, or an old one that is smaller than the new one."""
        if self._has_room(size_partitions):
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.used_ms <= IDLE_EVICTION_MS:
            established = [
                session for session in self._sessions.values() if now_ms - session.created_ms > IDLE_EVICTION_MS
            ]
            smallest = min(established, key=lambda session: len(session.partitions), default=None)
            if smallest is None or len(smallest.partitions) >= size_partitions:
                return False
            oldest = smallest
        self._end(oldest.session_id)
        self.evictions += 1
        return self._has_room(size_partitions)
