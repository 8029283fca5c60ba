"""What an error code means for whoever asked: one table of (API, code), rendered into docs/CLIENT_ERRORS.md. Pure.

Laws
    Every code of every API that the client uses has a verdict; one that stands nowhere is RETRY when Kafka calls it
    retriable, FATAL otherwise.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rota.protocol.errors import ErrorCode


class Verdict(Enum):
    """What to do next."""

    OK = "no error"
    RETRY = "ask the same broker again after a while"
    REFRESH = "read metadata, then ask whoever leads now"
    REDISCOVER = "find the coordinator, then ask it"
    REJOIN = "the membership is over or must be renewed: join again"
    RESET = "the position is not in the log: ask auto_offset_reset"
    FATAL = "asking again does not help: tell the caller"


def verdict(api: int, code: int) -> Verdict:
    """`api` is the API's key."""
    if code == 0:
        return Verdict.OK
    known = ErrorCode.of(code)
    found = _OF.get((api, known)) or _ANYWHERE.get(known)
    return found or (Verdict.RETRY if known.retriable else Verdict.FATAL)


_ANYWHERE: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.REFRESH,
    ErrorCode.REPLICA_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.NOT_CONTROLLER: Verdict.REFRESH,
    ErrorCode.KAFKA_STORAGE_ERROR: Verdict.REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.REFRESH,
    ErrorCode.INCONSISTENT_TOPIC_ID: Verdict.REFRESH,
    ErrorCode.LISTENER_NOT_FOUND: Verdict.REFRESH,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: Verdict.REDISCOVER,
    ErrorCode.ILLEGAL_GENERATION: Verdict.REJOIN,
    ErrorCode.UNKNOWN_MEMBER_ID: Verdict.REJOIN,
    ErrorCode.REBALANCE_IN_PROGRESS: Verdict.REJOIN,
    ErrorCode.MEMBER_ID_REQUIRED: Verdict.REJOIN,
    ErrorCode.OFFSET_OUT_OF_RANGE: Verdict.RESET,
    ErrorCode.ELECTION_NOT_NEEDED: Verdict.FATAL,
}
_OF: Final[dict[tuple[int, ErrorCode], Verdict]] = {}
