"""Split a byte stream into request frames: four bytes of length, then that many bytes of message. Pure.

Laws
    A length that is negative or above the limit is refused before any byte after it is stored.
    Every byte of a large frame is copied once, when the frame is complete.
"""

from __future__ import annotations

import struct

LENGTH_BYTES = 4
LARGE_FRAME_BYTES = 64 * 1024  # an incomplete frame of this size needs memory of the pool before it is read

_length_at = struct.Struct(">i").unpack_from
_OTHER_PROTOCOLS = {
    b"GET ": "an HTTP request",
    b"POST": "an HTTP request",
    b"PUT ": "an HTTP request",
    b"HEAD": "an HTTP request",
    b"OPTI": "an HTTP request",
    b"PRI ": "an HTTP/2 request",
    b"SSH-": "an SSH client",
    b"\x16\x03\x00\x00": "a TLS handshake, which this listener does not speak: it is a listener in plain text",
}


class Framer:
    """The received bytes of one connection. `bytes_max` limits the next frames. `refused` is the reason why it accepts
    no more bytes; `large` is the size of an incomplete frame above LARGE_FRAME_BYTES, else 0."""

    __slots__ = ("_chunks", "_have", "_need", "bytes_max", "large", "refused")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._chunks: list[bytes] = []
        self._have = 0
        self._need = LENGTH_BYTES  # bytes to receive before the next step of the parser
        self.large = 0
        self.refused: str | None = None

    @property
    def buffered(self) -> int:
        """The number of received bytes of the incomplete frame."""
        return self._have

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that `data` completes, in order, without their lengths; none after a refused length."""
        if self._have:
            self._chunks.append(data)
            self._have += len(data)
            if self._have < self._need:
                return []
            data = b"".join(self._chunks)
            self._chunks.clear()
            self._have = 0
        elif len(data) >= LENGTH_BYTES and _length_at(data)[0] == len(data) - LENGTH_BYTES <= self.bytes_max:
            return [data[LENGTH_BYTES:]] if self.refused is None else []  # the common case: one whole frame
        if self.refused is not None:
            return []
        return self._cut(data)

    def _cut(self, data: bytes) -> list[bytes]:
        frames: list[bytes] = []
        at, end = 0, len(data)
        while end - at >= LENGTH_BYTES:
            (size,) = _length_at(data, at)
            if not 0 <= size <= self.bytes_max:
                self.refused = _why(data[at : at + LENGTH_BYTES], size, self.bytes_max)
                return frames
            stop = at + LENGTH_BYTES + size
            if stop > end:
                self._keep(data, at, LENGTH_BYTES + size)
                return frames
            frames.append(data[at + LENGTH_BYTES : stop])
            at = stop
        self._keep(data, at, LENGTH_BYTES)
        return frames

    def _keep(self, data: bytes, at: int, need: int) -> None:
        self._need = need
        self.large = need if need > LARGE_FRAME_BYTES else 0
        self._have = len(data) - at
        if self._have:
            self._chunks.append(data[at:] if at else data)


def _why(head: bytes, size: int, bytes_max: int) -> str:
    other = _OTHER_PROTOCOLS.get(head) or (head[:2] == b"\x16\x03" and _OTHER_PROTOCOLS[b"\x16\x03\x00\x00"])
    if other:
        return f"it looks like {other}"
    return (
        f"a frame of {size} bytes, where socket.request.max.bytes (with SASL, before authentication, "
        f"sasl.server.max.receive.size) allows {bytes_max}"
        if size >= 0
        else (f"a frame of {size} bytes")
    )
