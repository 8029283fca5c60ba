"""The protocol between the processes of one host and the store of their supervisor: JSON frames on a socket. Pure.

    frame     u32 length | JSON, a list
    client    ["open", session, token, events seen, timeout in ms]       session 0 for a new one
              [number, events seen, "get" | "exists" | "children", path, whether to watch]
              [number, events seen, "commit", operations]
              [number, events seen, "close"]
    server    ["session", session, token] or ["expired"], to "open"
              [number, last change, "ok", result]
              [number, last change, "refused", name of a StoreError, path, reason]
              [number, last change, "failed", reason]
              ["event", its number, type, path]

Data are text in which each character stands for one byte. A client says in each frame how many events it has seen, and
a connection that follows another begins with those that it has not.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, Final

from rota.coordinator.metadata import store
from rota.coordinator.metadata.store import Check, Create, Delete, Op, Set, Stat, StoreError

FRAME_BYTES_MAX: Final = 64 << 20
COMMIT_BYTES_MAX: Final = FRAME_BYTES_MAX // 8  # JSON writes up to six characters for a byte
HEAD: Final = struct.Struct(">I")
REFUSALS: Final[dict[str, type[StoreError]]] = {
    kind.__name__: kind
    for kind in (
        store.BadNode,
        store.BadVersion,
        store.NoChildrenForEphemerals,
        store.NoNode,
        store.NodeExists,
        store.NotEmpty,
    )
}


class MalformedFrame(Exception):
    """The peer does not use this protocol."""


def frame(message: Sequence[object]) -> bytes:
    payload = json.dumps(message, separators=(",", ":")).encode()
    return HEAD.pack(len(payload)) + payload


def payload_bytes(head: bytes) -> int:
    """Length of what follows the head of a frame. Raises MalformedFrame."""
    (length,) = HEAD.unpack(head)
    if not 0 < length <= FRAME_BYTES_MAX:
        raise MalformedFrame(f"a frame of {length} bytes")
    return int(length)


def message(payload: bytes) -> list[Any]:
    """Raises MalformedFrame."""
    try:
        value = json.loads(payload)
    except ValueError as error:
        raise MalformedFrame(str(error)) from None
    if not isinstance(value, list) or not value:
        raise MalformedFrame(f"{value!r} is no message")
    return value


def op_row(op: Op) -> list[object]:
    match op:
        case Create(path, data, ephemeral, sequential):
            return ["create", path, text(data), ephemeral, sequential]
        case Set(path, data, version):
            return ["set", path, text(data), version]
        case Delete(path, version):
            return ["delete", path, version]
        case Check(path, version):
            return ["check", path, version]


def read_op(row: object) -> Op:
    """Raises MalformedFrame."""
    match row:
        case ["create", str(path), str(data), bool(ephemeral), bool(sequential)]:
            return Create(path, data.encode("latin-1"), ephemeral, sequential)
        case ["set", str(path), str(data), int(version)]:
            return Set(path, data.encode("latin-1"), version)
        case ["delete", str(path), int(version)]:
            return Delete(path, version)
        case ["check", str(path), int(version)]:
            return Check(path, version)
    raise MalformedFrame(f"{row!r} is no operation")


def stat_row(stat: Stat) -> list[int]:
    return [stat.version, stat.owner, stat.child_count, stat.created, stat.changed]


def text(data: bytes) -> str:
    return data.decode("latin-1")
