"""What an error code means for whoever asked: one table of (API, code), rendered into docs/CLIENT_ERRORS.md. Pure.

Laws
    Every code of every API that the client uses has a verdict; one that stands nowhere is RETRY when Kafka calls it
    retriable, FATAL otherwise.
"""

from __future__ import annotations

from enum import Enum


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
    raise NotImplementedError
