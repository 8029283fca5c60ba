"""Split a byte stream into response frames: four bytes of length, then that many bytes of response. Pure.

Laws
    An invalid length is refused before any byte after it is stored.
    Every byte of a frame is copied at most once, when the frame is complete.
    The frames do not depend on how the stream was split into chunks.
"""

from __future__ import annotations

from typing import Final

LENGTH_BYTES: Final = 4
FRAME_BYTES_MIN: Final = 4  # a correlation id
FRAME_BYTES_MAX: Final = 0x15 << 24  # 336 MiB: a broker gives 55 MiB at once (its fetch.max.bytes) or one large batch
_TLS_ALERT: Final = b"\x15\x03"
_HINTS: Final = {b"HTTP": "an HTTP server", _TLS_ALERT: "a TLS listener", b"SSH-": "an SSH server"}


class InvalidFrame(ValueError):
    """The received bytes cannot be a response of Kafka's protocol. `is_tls`: they are an alert of TLS."""

    is_tls = False


class Frames:
    """The received bytes of one connection."""

    __slots__ = ("_bytes_max", "_chunks", "_head", "_missing")

    def __init__(self, bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._head = b""  # the first bytes of an incomplete length
        self._chunks: list[bytes] = []  # the received bytes of the incomplete frame
        self._missing = 0  # bytes of that frame that are still to come; 0 between two frames

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that `data` completes, in order, without their lengths. Raises InvalidFrame."""
        missing = self._missing
        if not missing:
            return self._cut(self._head + data if self._head else data, 0, [])
        if len(data) < missing:
            self._chunks.append(data)
            self._missing = missing - len(data)
            return []
        self._chunks.append(data if len(data) == missing else data[:missing])
        whole = b"".join(self._chunks)
        self._chunks.clear()
        self._missing = 0
        return self._cut(data, missing, [whole])

    def _cut(self, data: bytes, at: int, frames: list[bytes]) -> list[bytes]:
        end = len(data)
        while end - at >= LENGTH_BYTES:
            size = int.from_bytes(data[at : at + LENGTH_BYTES], "big", signed=True)
            if not FRAME_BYTES_MIN <= size <= self._bytes_max:
                raise _invalid(data[at : at + LENGTH_BYTES], size, self._bytes_max)
            at += LENGTH_BYTES
            if at + size > end:
                self._head = b""
                self._missing = size - (end - at)
                if end > at:
                    self._chunks.append(data[at:])
                return frames
            frames.append(data[at : at + size])
            at += size
        self._head = data[at:]
        return frames


def _invalid(head: bytes, size: int, bytes_max: int) -> InvalidFrame:
    looks = next((text for begin, text in _HINTS.items() if head.startswith(begin)), None)
    problem = f"an answer of {size} bytes, where {FRAME_BYTES_MIN} to {bytes_max} are possible"
    why = InvalidFrame(f"{problem}: it looks like {looks}" if looks else problem)
    why.is_tls = head.startswith(_TLS_ALERT)
    return why
