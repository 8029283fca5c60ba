"""The follower's side of a fetch session (KIP-227): each request names only what has changed. Pure.

Laws
    FS1 The leader's view of the session is that of the last request; a session that the leader has lost begins anew
        with every partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rota.protocol.dataclass import dataclass
from rota.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION: Final = 0
FULL_EPOCH: Final = 0
EPOCH_MAX: Final = 0x7FFF_FFFF

Key = tuple[bytes, int]  # topic id, partition
Positions = Mapping[Key, FetchPartition]


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The session part of a Fetch request."""

    session_id: int
    epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten: tuple[ForgottenTopic, ...] = ()


class FollowerSession:
    """One session with one leader, on one connection."""

    __slots__ = ("_epoch", "_session_id", "is_refused")

    def __init__(self) -> None:
        self._session_id, self._epoch = NO_SESSION, FULL_EPOCH
        self.is_refused = False  # the leader has no room: every request is a full one, and waits like any other

    @property
    def is_established(self) -> bool:
        """Whether the leader keeps the session: requests are incremental, and one more may be sent meanwhile."""
        return self._session_id != NO_SESSION

    def full(self, positions: Positions) -> SessionRequest:
        """Make the request that begins a session with all partitions."""
        self.lost()
        return SessionRequest(NO_SESSION, FULL_EPOCH, _topics(positions))

    def incremental(self, changed: Positions, removed: Iterable[Key]) -> SessionRequest:
        """Make the next request: partitions that are new or have another position, and those to forget."""
        request = SessionRequest(self._session_id, self._epoch, _topics(changed), _forgotten(removed))
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        return request

    def answered(self, session_id: int) -> None:
        """Take the session id of an answer; NO_SESSION: the leader has no room for the session."""
        self.is_refused = session_id == NO_SESSION
        if session_id != self._session_id:
            self._session_id, self._epoch = session_id, 1

    def lost(self) -> None:
        """The leader does not know the session: the next request is a full one."""
        self._session_id, self._epoch = NO_SESSION, FULL_EPOCH


def _topics(positions: Positions) -> tuple[FetchTopic, ...]:
    by_topic: dict[bytes, list[FetchPartition]] = {}
    for (topic_id, _), position in positions.items():
        by_topic.setdefault(topic_id, []).append(position)
    return tuple(FetchTopic(topic_id=topic_id, partitions=tuple(each)) for topic_id, each in by_topic.items())


def _forgotten(keys: Iterable[Key]) -> tuple[ForgottenTopic, ...]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, index in keys:
        by_topic.setdefault(topic_id, []).append(index)
    return tuple(ForgottenTopic(topic_id=topic_id, partitions=tuple(each)) for topic_id, each in by_topic.items())
