"""The client side of a fetch session (KIP-227): the partitions that a broker knows, and the changes to send. Pure.

Laws
    After each request the broker's session has exactly the partitions and offsets of that request.
    Without a successful response the next request is a full one.
    A partition that a response omits is as the broker last returned it in this session, also if that was discarded.
    A session uses topic ids or topic names, never both; a change between them begins a new session (v13, KIP-516).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages import fetch as wire
from rota.protocol.wire import UUID_ZERO

NO_SESSION: Final = 0
FULL: Final = 0  # the epoch of a full fetch, which begins a session
EPOCH_MAX: Final = 0x7FFF_FFFF

# errors of the session, not of a partition: the next request begins a new session
SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class FetchPartition(NamedTuple):
    """The fetch of one partition. `leader_epoch` is the current one, `last_epoch` that of the record before the offset;
    both -1 if unknown. `position_epoch` is not sent to the broker."""

    offset: int
    bytes_max: int
    leader_epoch: int = -1
    last_epoch: int = -1
    topic_id: bytes = UUID_ZERO
    position_epoch: int = 0


class LogEnds(NamedTuple):
    """What a response says of a partition's log; -1 is unknown."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class SessionRequest(NamedTuple):
    """The session fields of a FetchRequest."""

    session_id: int
    epoch: int
    topics: tuple[wire.FetchTopic, ...]
    forgotten: tuple[wire.ForgottenTopic, ...]


class FetchSession:
    """The session with one broker. Call `next_request` for each request, then `handle_response` or `failed`."""

    __slots__ = ("_by_id", "_ends", "_epoch", "_known", "_session_id")

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = FULL
        self._by_id = False
        self._known: dict[TopicPartition, FetchPartition] = {}
        self._ends: dict[TopicPartition, LogEnds] = {}

    def next_request(self, to_fetch: Mapping[TopicPartition, FetchPartition], *, by_id: bool) -> SessionRequest:
        """Return the request after which the session has exactly `to_fetch`. `by_id`: every topic has an id."""
        if by_id != self._by_id:
            self._by_id, self._epoch = by_id, FULL
        known = self._known if self._epoch != FULL else {}
        changed = {
            partition: requested
            for partition, requested in to_fetch.items()
            if not _same(known.get(partition), requested)
        }
        removed = {
            partition: requested
            for partition, requested in known.items()
            if partition not in to_fetch or (by_id and requested.topic_id != to_fetch[partition].topic_id)
        }
        self._known = dict(to_fetch)
        if self._epoch == FULL:
            self._ends.clear()
        for partition in removed:
            self._ends.pop(partition, None)
        return SessionRequest(self._session_id, self._epoch, _topics(changed), _forgotten(removed))

    def handle_response(self, error_code: int, session_id: int) -> bool:
        """Return whether the partitions of the response are valid; False if `error_code` is one of the session."""
        if error_code:
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION
            self._epoch = FULL
            return False
        if session_id == NO_SESSION:
            self._session_id, self._epoch = NO_SESSION, FULL
        elif self._epoch == FULL:
            self._session_id, self._epoch = session_id, 1
        else:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        return True

    def store_ends(self, partition: TopicPartition, data: wire.PartitionData) -> None:
        """Store what a response contains of a partition; after an error the broker sends it again."""
        if not data.error_code:
            self._ends[partition] = LogEnds(data.high_watermark, data.last_stable_offset, data.log_start_offset)

    def omitted(self, answered: AbstractSet[TopicPartition]) -> Iterator[tuple[TopicPartition, LogEnds]]:
        """The partitions that the last request was about and its response not, which is `answered`."""
        for partition, ends in self._ends.items():
            if partition not in answered:
                yield partition, ends

    def failed(self) -> None:
        """Handle a request without a response: the next request is a full one."""
        self._epoch = FULL


def _same(known: FetchPartition | None, requested: FetchPartition) -> bool:
    return known is not None and known[:-1] == requested[:-1]


def _topics(to_fetch: Mapping[TopicPartition, FetchPartition]) -> tuple[wire.FetchTopic, ...]:
    topics: dict[tuple[str, bytes], list[wire.FetchPartition]] = {}
    for (topic, partition), requested in to_fetch.items():
        wire_partition = wire.FetchPartition(
            partition=partition,
            current_leader_epoch=requested.leader_epoch,
            fetch_offset=requested.offset,
            last_fetched_epoch=requested.last_epoch,
            partition_max_bytes=requested.bytes_max,
        )
        topics.setdefault((topic, requested.topic_id), []).append(wire_partition)
    return tuple(wire.FetchTopic(topic=name, topic_id=id_, partitions=tuple(of)) for (name, id_), of in topics.items())


def _forgotten(to_fetch: Mapping[TopicPartition, FetchPartition]) -> tuple[wire.ForgottenTopic, ...]:
    topics: dict[tuple[str, bytes], list[int]] = {}
    for (topic, partition), requested in to_fetch.items():
        topics.setdefault((topic, requested.topic_id), []).append(partition)
    return tuple(
        wire.ForgottenTopic(topic=name, topic_id=id_, partitions=tuple(of)) for (name, id_), of in topics.items()
    )
