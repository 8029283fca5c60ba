"""Fetch sessions (KIP-227): a consumer names its partitions once, later requests and answers say only what changed.

Laws
    F1  An incremental answer leaves a partition out only when the consumer has already been told all there is to tell.
    F2  A session's epoch grows by one with every request; a request of another epoch changes nothing.
    F3  A session that gave records for a partition asks that partition last the next time, so that none starves.
    F4  Sessions are a bounded cache: whoever finds no room is served in full, without a session.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from rota.coordinator.replica.partition_lookup import Key
from rota.protocol.errors import ErrorCode

NO_SESSION: Final = 0
FULL_EPOCH: Final = 0  # "forget what you know, and begin a session"
FINAL_EPOCH: Final = -1  # "forget what you know, and begin none"
EPOCH_MAX: Final = 0x7FFF_FFFF
SESSION_ID_MAX: Final = 0x7FFF_FFFF
SESSIONS_MAX: Final = 1000  # max.incremental.fetch.session.cache.slots
SESSION_PARTITIONS_MAX: Final = 100_000
CACHED_PARTITIONS_MAX: Final = 1_000_000  # of all sessions together: some 300 MB
IDLE_EVICTION_MS: Final = 120_000  # Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS
NEVER_TOLD: Final = -1


@dataclass(slots=True)
class FetchPartition:
    """What a fetch wants of one partition. Epochs are -1 when the consumer does not know them."""

    offset: int
    bytes_max: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class SessionRequest:
    """The session part of a request. `wants` keeps the order of the request, which is the order of reading."""

    wants: dict[Key, FetchPartition]
    forgotten: Sequence[Key] = ()
    session_id: int = NO_SESSION
    epoch: int = FINAL_EPOCH
    by_id: bool = False


class Answer(Protocol):
    """What a session looks at in the answer for one partition; the wire's own message has these fields."""

    @property
    def error_code(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def preferred_read_replica(self) -> int: ...
    @property
    def diverging_epoch(self) -> object | None: ...
    @property
    def records(self) -> bytes | memoryview | None: ...


A = TypeVar("A", bound=Answer)


@dataclass(slots=True)
class Selected(Generic[A]):
    """What goes out of all that was read."""

    error: ErrorCode
    session_id: int
    answers: Sequence[tuple[Key, A]]


@dataclass(slots=True)
class _Cached:
    """A partition of a session: what is wanted, and what was last told (-1: tell it again)."""

    want: FetchPartition
    high_watermark: int = NEVER_TOLD
    log_start_offset: int = NEVER_TOLD


@dataclass(slots=True)
class FetchSession:
    session_id: int
    by_id: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    partitions: dict[Key, _Cached] = field(default_factory=dict)

    def update(self, asked: SessionRequest) -> None:
        for key, want in asked.wants.items():
            cached = self.partitions.get(key)
            if cached is None:
                self.partitions[key] = _Cached(want)
            else:
                cached.want = want
        for key in asked.forgotten:
            self.partitions.pop(key, None)

    def tells(self, key: Key, answer: Answer) -> bool:
        """Note what this answer says; False when it says nothing new."""
        cached = self.partitions[key]
        news = answer.diverging_epoch is not None or answer.preferred_read_replica != -1
        if answer.high_watermark != cached.high_watermark:
            cached.high_watermark, news = answer.high_watermark, True
        if answer.log_start_offset != cached.log_start_offset:
            cached.log_start_offset, news = answer.log_start_offset, True
        if answer.error_code:
            cached.high_watermark, news = NEVER_TOLD, True
        if answer.records:
            self.partitions[key] = self.partitions.pop(key)
            news = True
        return news


class Refused:
    """The session is not there, or not at that epoch: nothing is read."""

    __slots__ = ("error",)
    knows: Final = None

    def __init__(self, error: ErrorCode) -> None:
        self.error = error

    def wants(self) -> Iterable[tuple[Key, FetchPartition]]:
        return ()

    def select(self, answers: Sequence[tuple[Key, A]], now_ms: int) -> Selected[A]:
        return Selected(self.error, NO_SESSION, ())


class Sessionless:
    """All is asked, all is answered."""

    __slots__ = ("_wants",)
    error: Final = ErrorCode.NONE
    knows: Final = None

    def __init__(self, wants: dict[Key, FetchPartition]) -> None:
        self._wants = wants

    def wants(self) -> Iterable[tuple[Key, FetchPartition]]:
        return self._wants.items()

    def select(self, answers: Sequence[tuple[Key, A]], now_ms: int) -> Selected[A]:
        return Selected(ErrorCode.NONE, NO_SESSION, answers)


class Full:
    """All is asked and answered, and remembered as a new session when there is room."""

    __slots__ = ("_asked", "_sessions")
    error: Final = ErrorCode.NONE
    knows: Final = None

    def __init__(self, sessions: FetchSessions, asked: SessionRequest) -> None:
        self._sessions, self._asked = sessions, asked

    def wants(self) -> Iterable[tuple[Key, FetchPartition]]:
        return self._asked.wants.items()

    def select(self, answers: Sequence[tuple[Key, A]], now_ms: int) -> Selected[A]:
        told = {key: _Cached(self._asked.wants[key], one.high_watermark, one.log_start_offset) for key, one in answers}
        return Selected(ErrorCode.NONE, self._sessions.begin(told, self._asked.by_id, now_ms), answers)


class Incremental:
    """What the session knows is asked; what it has not told yet is answered."""

    __slots__ = ("_epoch", "_session")
    error: Final = ErrorCode.NONE

    def __init__(self, session: FetchSession) -> None:
        self._session, self._epoch = session, session.epoch

    def wants(self) -> Iterable[tuple[Key, FetchPartition]]:
        return [(key, cached.want) for key, cached in self._session.partitions.items()]

    def knows(self, key: Key, high_watermark: int, log_start_offset: int) -> bool:
        """Whether that was told before, so that an answer without records would say nothing new."""
        cached = self._session.partitions.get(key)
        return (
            cached is not None
            and cached.high_watermark == high_watermark
            and cached.log_start_offset == log_start_offset
        )

    def select(self, answers: Sequence[tuple[Key, A]], now_ms: int) -> Selected[A]:
        session = self._session
        if session.epoch != self._epoch:  # used on another connection while this request waited
            return Selected(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id, ())
        told = [(key, answer) for key, answer in answers if session.tells(key, answer)]
        return Selected(ErrorCode.NONE, session.session_id, told)


FetchContext = Refused | Sessionless | Full | Incremental


def _draw_id() -> int:
    return secrets.randbelow(SESSION_ID_MAX) + 1


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

    def open(self, asked: SessionRequest, now_ms: int) -> FetchContext:
        """How to treat a request. Errors (FETCH_SESSION_ID_NOT_FOUND and its kin) are in the context."""
        if asked.epoch in (FULL_EPOCH, FINAL_EPOCH):
            self._end(asked.session_id)
            return Sessionless(asked.wants) if asked.epoch == FINAL_EPOCH else Full(self, asked)
        session = self._sessions.get(asked.session_id)
        if session is None:
            return Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != asked.epoch:
            return Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != asked.by_id:
            return Refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return self._go_on(session, asked, now_ms)

    def begin(self, partitions: dict[Key, _Cached], by_id: bool, now_ms: int) -> int:
        """The id of a new session; NO_SESSION when there is no room for it."""
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

    def _go_on(self, session: FetchSession, asked: SessionRequest, now_ms: int) -> FetchContext:
        self._end(session.session_id)
        session.update(asked)
        if not session.partitions:
            return Sessionless(asked.wants)
        size = len(session.partitions)
        if size > SESSION_PARTITIONS_MAX or self.cached_partitions + size > self._partitions_max:
            return Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)  # the consumer comes back in full
        self._sessions[session.session_id] = session
        self.cached_partitions += len(session.partitions)
        session.used_ms = now_ms
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        return Incremental(session)

    def _has_room(self, size_partitions: int) -> bool:
        few = self.cached_partitions + size_partitions <= self._partitions_max
        return few and len(self._sessions) < self._slots_max

    def _make_room(self, size_partitions: int, now_ms: int) -> bool:
        """Evict, if need be, a session long unused, or an old one that is smaller than the new one."""
        if self._has_room(size_partitions):
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.used_ms <= IDLE_EVICTION_MS:
            settled = [one for one in self._sessions.values() if now_ms - one.created_ms > IDLE_EVICTION_MS]
            smallest = min(settled, key=lambda one: len(one.partitions), default=None)
            if smallest is None or len(smallest.partitions) >= size_partitions:
                return False
            oldest = smallest
        self._end(oldest.session_id)
        self.evictions += 1
        return self._has_room(size_partitions)
