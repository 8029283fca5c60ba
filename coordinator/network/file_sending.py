"""Writes a reply of which some pieces are parts of files: those are sent from the page cache, without a copy.

Laws
    F18 The peer receives the same bytes in the same order as from memory. A reply that cannot be completed ends its
        connection, because its length is sent already.
    Nothing blocks: what the socket does not take at once is read into memory and written by the transport. So is
    everything behind bytes that the transport still has, and everything over TLS or where a file system cannot do it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final, Protocol

from rota.coordinator.network.owner import CORK
from rota.transport.writing import write_parts

BUFFERS_MAX: Final = 256  # of one system call; Linux takes 1,024
_UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})  # by the file system
_MEMORY: Final = frozenset({bytes, memoryview, bytearray})


class FilePiece(Protocol):
    """A part of a file; methods raise OSError. What is sent leaves it."""

    def __len__(self) -> int: ...

    def send(self, socket_fd: int) -> int:
        """Send what the socket takes; return how many bytes. Raises BlockingIOError when it takes none."""

    def read(self) -> bytes:
        """Return the bytes that are not sent."""


Buffer = bytes | memoryview
Piece = Buffer | FilePiece


def in_memory(piece: Any) -> Buffer:
    """Return the bytes of a piece. Raises OSError."""
    return piece if piece.__class__ in _MEMORY else piece.read()  # type: ignore[no-any-return]


def write_pieces(transport: asyncio.Transport, pieces: Sequence[Piece]) -> None:
    """Write them in this order. Raises OSError: some bytes were written and the rest cannot be."""
    if any(piece.__class__ not in _MEMORY for piece in pieces):
        pieces = _send_now(transport, pieces)
    if pieces:
        write_parts(transport, [in_memory(piece) for piece in pieces])


def _send_now(transport: asyncio.Transport, pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Send what the socket takes, if the transport has nothing to send before it; return the rest. Raises OSError."""
    if transport.is_closing() or transport.get_write_buffer_size():
        return pieces
    connected = transport.get_extra_info("socket")
    connected.setsockopt(socket.IPPROTO_TCP, CORK, 1)
    try:
        return _send(connected.fileno(), pieces)
    finally:
        connected.setsockopt(socket.IPPROTO_TCP, CORK, 0)


def _send(socket_fd: int, pieces: Sequence[Piece]) -> Sequence[Piece]:
    while pieces:
        buffers: list[Any] = list(takewhile(lambda piece: piece.__class__ in _MEMORY, pieces[:BUFFERS_MAX]))
        try:
            if buffers:
                pieces = _behind(pieces, os.writev(socket_fd, buffers))
            elif pieces[0].send(socket_fd) and not len(pieces[0]):  # type: ignore[union-attr]
                pieces = pieces[1:]
        except BlockingIOError:
            return pieces
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            return pieces
    return ()


def _behind(pieces: Sequence[Any], sent: int) -> Sequence[Piece]:
    """Return the pieces without their first bytes, which are in memory."""
    for at, piece in enumerate(pieces):
        if sent < len(piece):
            return [memoryview(piece)[sent:], *pieces[at + 1 :]] if sent else pieces[at:]
        sent -= len(piece)
    return ()
