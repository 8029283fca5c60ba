"""User data of the sticky assignors in a subscription: the leader learns the previous owners of partitions from it.

    sticky              v0 the previous partitions of the member; v1 and their generation (KIP-341): Java, aiokafka
    cooperative-sticky  the generation, for leaders that do not know version 2 of the subscription: Java
                        the same as sticky v1: librdkafka, which itself does not read it

Laws
    Neither has a version number: data that cannot be decoded as v1 is decoded as v0, as in Java.
    The decoders return None for garbage and never raise. Trailing bytes are ignored.
"""

from __future__ import annotations

from typing import Final, TypeVar

from rota.protocol.compiler import codec
from rota.protocol.consumer_protocol import TopicPartition
from rota.protocol.wire import NEVER, Array, DecodeError, Int32, wire, wired

_GENERATION_BYTES: Final = 4


@wired
class StickyUserData:
    """The previous partitions of a member and their generation, -1 when it is unknown."""

    VERSIONS, FLEXIBLE = range(2), NEVER

    previous_assignment: tuple[TopicPartition, ...] = wire(Array(TopicPartition), default=())
    generation: int = wire(Int32, since=1, default=-1)


@wired
class CooperativeStickyUserData:
    """The generation of the owned partitions in the subscription."""

    VERSIONS, FLEXIBLE = range(1), NEVER

    generation: int = wire(Int32, default=-1)


M = TypeVar("M", StickyUserData, CooperativeStickyUserData)


def encode_sticky(user_data: StickyUserData, version: int = 1) -> bytes:
    """Encode in the format of Java's StickyAssignor."""
    return codec(StickyUserData, version).encode(user_data)


def decode_sticky(raw: bytes) -> StickyUserData | None:
    """Decode version 1 or 0; None for other data."""
    newest = _decode(StickyUserData, 1, raw)
    return newest if newest is not None else _decode(StickyUserData, 0, raw)


def encode_cooperative(generation: int) -> bytes:
    """Encode in the format of Java's CooperativeStickyAssignor."""
    return codec(CooperativeStickyUserData, 0).encode(CooperativeStickyUserData(generation=generation))


def decode_cooperative(raw: bytes) -> int | None:
    """The generation, in the format of Java or of librdkafka; None for other data."""
    if len(raw) > _GENERATION_BYTES:
        sticky = _decode(StickyUserData, 1, raw)
        return None if sticky is None else sticky.generation
    found = _decode(CooperativeStickyUserData, 0, raw)
    return None if found is None else found.generation


def _decode(message: type[M], version: int, raw: bytes) -> M | None:
    try:
        return codec(message, version).decode(raw)[0]
    except DecodeError:
        return None
