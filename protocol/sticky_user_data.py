"""What sticky assignors put into the user data of a subscription, so that whoever leads knows who had what.

    sticky              v0 the partitions that the member had; v1 and since when (KIP-341): Java, aiokafka
    cooperative-sticky  the generation, for leaders that do not know version 2 of the subscription: Java
                        the same as sticky v1: librdkafka, which itself reads nothing of it

Laws
    No version number stands before either: what does not read as the newest is read as the older one, as Java does.
    Garbage is nothing: the readers return None for it and never raise. Trailing bytes are left alone.
"""

from __future__ import annotations

from typing import Final, TypeVar

from rota.protocol.compiler import codec
from rota.protocol.consumer_protocol import TopicPartition
from rota.protocol.wire import NEVER, Array, DecodeError, Int32, wire, wired

_GENERATION_BYTES: Final = 4


@wired
class StickyUserData:
    """What a member had, and in which generation; -1 when it does not say."""

    VERSIONS, FLEXIBLE = range(2), NEVER

    previous_assignment: tuple[TopicPartition, ...] = wire(Array(TopicPartition), default=())
    generation: int = wire(Int32, since=1, default=-1)


@wired
class CooperativeStickyUserData:
    """The generation of the partitions that the subscription itself names."""

    VERSIONS, FLEXIBLE = range(1), NEVER

    generation: int = wire(Int32, default=-1)


M = TypeVar("M", StickyUserData, CooperativeStickyUserData)


def encode_sticky(user_data: StickyUserData, version: int = 1) -> bytes:
    """As Java's StickyAssignor writes it."""
    return codec(StickyUserData, version).encode(user_data)


def decode_sticky(raw: bytes) -> StickyUserData | None:
    """Version 1 or 0; None for what is neither."""
    newest = _decode(StickyUserData, 1, raw)
    return newest if newest is not None else _decode(StickyUserData, 0, raw)


def encode_cooperative(generation: int) -> bytes:
    """As Java's CooperativeStickyAssignor writes it."""
    return codec(CooperativeStickyUserData, 0).encode(CooperativeStickyUserData(generation=generation))


def decode_cooperative(raw: bytes) -> int | None:
    """The generation as Java or as librdkafka writes it; None for anything else."""
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
