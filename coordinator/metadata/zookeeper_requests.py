"""ZooKeeper's requests that kazoo has not: reads of many nodes at once, and watches that are set without a read.

`serialize` and `deserialize` are called by kazoo, in its thread. Source: ZooDefs.OpCode, MultiOperationRecord,
MultiResponse and SetWatches of ZooKeeper 3.6.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from kazoo.exceptions import EXCEPTIONS, SystemZookeeperError, ZookeeperError
from kazoo.protocol.serialization import GetData

EXCEPTIONS.default_factory = lambda: SystemZookeeperError  # kazoo's raises, which leaves the request without an answer
SET_WATCHES_BYTES_MAX: Final = 128 << 10  # as ZooKeeper's own client
_HEADER: Final = struct.Struct(">i?i")  # of each operation and each result: type, whether it is the end, error
_ERROR: Final = struct.Struct(">i")
_ERROR_TYPE: Final = -1
_STAT_BYTES: Final = 68


class MultiRead:
    """The data of several nodes. The answer has data and stat, or an error, for each, in the order of `paths`.

    ZooKeeper sets no watches with it: where there is an `on_read`, the connection calls it in the loop with the
    answer, and sets watches after that. A server before ZooKeeper 3.6 does not know the request.
    """

    type = 22

    def __init__(self, paths: Sequence[str], on_read: Callable[[list[Any]], None] | None) -> None:
        self.paths, self.on_read = paths, on_read

    def serialize(self) -> bytes:
        operation, end = _HEADER.pack(GetData.type, False, -1), _HEADER.pack(_ERROR_TYPE, True, -1)
        encoded = (path.encode() for path in self.paths)
        return b"".join(operation + _ERROR.pack(len(path)) + path + b"\0" for path in encoded) + end

    def deserialize(self, data: bytes, offset: int) -> list[tuple[bytes, Any] | ZookeeperError]:
        """Raises ValueError, struct.error."""
        results: list[tuple[bytes, Any] | ZookeeperError] = []
        while True:
            kind, is_end, _ = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            if is_end and len(results) != len(self.paths):
                raise ValueError(f"{len(results)} results of {len(self.paths)} reads")
            if is_end:
                return results
            if kind == _ERROR_TYPE:
                results.append(EXCEPTIONS[_ERROR.unpack_from(data, offset)[0]]())
                offset += _ERROR.size
            else:
                results.append(GetData.deserialize(data, offset))
                offset += _ERROR.size + max(0, _ERROR.unpack_from(data, offset)[0]) + _STAT_BYTES


class SetWatches:
    """Sets watches on nodes, and fires those of what has changed since the change `last_change`.

    `data` exist, `absent` do not, of `children` the children are watched.
    """

    type = 101

    def __init__(self, last_change: int, data: list[str], absent: list[str], children: list[str]) -> None:
        self._last_change, self._paths = last_change, (data, absent, children)

    def serialize(self) -> bytes:
        return struct.pack(">q", self._last_change) + b"".join(map(_strings, self._paths))

    @staticmethod
    def deserialize(data: bytes, offset: int) -> bool:
        return True


def set_watches(
    last_change: int, nodes: Iterable[str], absent: set[str], parents: Iterable[str]
) -> Iterator[SetWatches]:
    """Yield the requests that set watches on these nodes, of which some are `absent`, and on children of `parents`."""
    lists: tuple[list[str], list[str], list[str]] = ([], [], [])
    size_bytes = 0
    for kind, paths in ((0, nodes), (2, parents)):
        for path in paths:
            lists[1 if kind == 0 and path in absent else kind].append(path)
            size_bytes += len(path.encode()) + 4
            if size_bytes > SET_WATCHES_BYTES_MAX:
                yield SetWatches(last_change, *lists)
                lists, size_bytes = ([], [], []), 0
    if any(lists):
        yield SetWatches(last_change, *lists)


def _strings(values: list[str]) -> bytes:
    encoded = [value.encode() for value in values]
    return struct.pack(">i", len(encoded)) + b"".join(struct.pack(">i", len(text)) + text for text in encoded)
