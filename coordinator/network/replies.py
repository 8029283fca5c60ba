"""A reply in the queue of its connection: its slot and its encoded bytes.

A reply larger than WRITE_CHUNK_BYTES keeps its record batches as memoryviews, so that they are not copied again.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, cast

from rota.coordinator.network.dispatch import ApiHandler
from rota.coordinator.scheduling.delayed_reply import DelayedReply

if TYPE_CHECKING:
    from rota.coordinator.network.file_sending import Piece

pack_lead = struct.Struct(">ii").pack  # length, correlation id
pack_lead_tagged = struct.Struct(">iib").pack  # and no tagged fields


class Slot:
    """The slot of one reply. `pieces` is None until the reply is ready; it is empty for a request without a response.

    `size` counts the bytes that the slot holds in memory: the request, and then the reply while it waits for earlier
    ones. `begun_ns` is the time at which the request was read, `api` its key and version as in `dispatch`.
    """

    __slots__ = ("api", "begun_ns", "correlation_id", "delayed_reply", "handler", "pieces", "size")

    def __init__(self, handler: ApiHandler, correlation_id: int, size: int, begun_ns: int = 0, api: int = 0) -> None:
        self.handler, self.correlation_id, self.size, self.begun_ns = handler, correlation_id, size, begun_ns
        self.api = api
        self.delayed_reply: DelayedReply[Any] | None = None
        self.pieces: list[Piece] | None = None

    def fill(self, value: Any, *, waits: bool = False) -> int:
        """Store the encoded reply and return its size in bytes. If `value` is an exception, raise it.

        A reply that `waits` for earlier ones keeps no files open: its parts of files are read. Raises OSError.
        """
        if isinstance(value, Exception):
            raise value
        if self.handler.has_error and value is not None and value.error_code:
            self.handler.counters.add_error(value.error_code)
        pieces = [] if value is None else framed(self.handler, self.correlation_id, value)
        if waits and self.handler.bulky:
            from rota.coordinator.network.file_sending import in_memory

            pieces = [in_memory(piece) for piece in pieces]
        self.pieces = pieces
        size = len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))
        self.size += size
        return size


def framed(handler: ApiHandler, correlation_id: int, value: Any) -> list[Piece]:
    """Return an encoded response with its length and header."""
    if handler.bulky:
        pieces = cast("list[Piece]", handler.parts(value))
        return [_lead(handler, correlation_id, sum(map(len, pieces))), *pieces]
    body = handler.encode(value)
    if handler.tagged:
        return [pack_lead_tagged(len(body) + 5, correlation_id, 0) + body]
    return [pack_lead(len(body) + 4, correlation_id) + body]


def _lead(handler: ApiHandler, correlation_id: int, size: int) -> bytes:
    if handler.tagged:
        return pack_lead_tagged(size + 5, correlation_id, 0)
    return pack_lead(size + 4, correlation_id)
