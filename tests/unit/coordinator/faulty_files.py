"""A file system that fails on request: the seam of every test with storage faults."""

from __future__ import annotations

import errno
import threading
from dataclasses import dataclass, field
from pathlib import Path

from rota.coordinator.log.files import Buffer, FileSystem


@dataclass(eq=False)
class Fault:
    """`call` on paths that contain `name` fails with `code`, after writing `short_bytes` if it is a write.

    `times` is how often (None: until `clear`); `blocks` makes the call wait until the event is set.
    """

    call: str
    name: str = ""
    code: int = errno.EIO
    short_bytes: int = 0
    times: int | None = None
    blocks: threading.Event | None = None
    hits: int = 0


@dataclass
class Call:
    """One call that reached the file system, and the thread that made it."""

    call: str
    path: str
    thread: int = field(default_factory=threading.get_ident)


class FaultyFiles(FileSystem):
    """Real files, with faults. `uncached` names paths that are not in the page cache until they are loaded.

    With `forgets_loads` the page cache keeps nothing that is loaded.
    """

    __slots__ = ("_paths", "calls", "faults", "forgets_loads", "uncached")

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.calls: list[Call] = []
        self.uncached: set[str] = set()
        self.forgets_loads = False
        self._paths: dict[int, str] = {}

    def fail(
        self,
        call: str,
        name: str = "",
        code: int = errno.EIO,
        *,
        short_bytes: int = 0,
        times: int | None = None,
        blocks: threading.Event | None = None,
    ) -> Fault:
        """Begin a fault; returns it, for its `hits`."""
        fault = Fault(call, name, code, short_bytes, times, blocks)
        self.faults.append(fault)
        return fault

    def clear(self) -> None:
        """End all faults."""
        self.faults.clear()

    def open_read(self, path: Path) -> int:
        self._meet("open", str(path))
        fd = super().open_read(path)
        self._paths[fd] = str(path)
        return fd

    def open_write(self, path: Path) -> int:
        self._meet("open", str(path))
        fd = super().open_write(path)
        self._paths[fd] = str(path)
        return fd

    def duplicate(self, fd: int) -> int:
        copy = super().duplicate(fd)
        self._paths[copy] = self._paths[fd]
        return copy

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        fault = self._met("pwrite", self._paths[fd])
        if fault is None:
            return super().pwrite(fd, data, position)
        if fault.short_bytes:
            short_bytes, fault.short_bytes = fault.short_bytes, 0
            return super().pwrite(fd, bytes(data[:short_bytes]), position)
        raise OSError(fault.code, "injected")

    def pread(self, fd: int, count: int, position: int) -> bytes:
        self._meet("pread", self._paths[fd])
        return super().pread(fd, count, position)

    def ftruncate(self, fd: int, size_bytes: int) -> None:
        self._meet("ftruncate", self._paths[fd])
        super().ftruncate(fd, size_bytes)

    def fsync(self, fd: int) -> None:
        self._meet("fsync", self._paths[fd])
        super().fsync(fd)

    def replace(self, old: Path, new: Path) -> None:
        self._meet("replace", str(new))
        super().replace(old, new)

    def unlink(self, path: Path) -> None:
        self._meet("unlink", str(path))
        super().unlink(path)

    def is_cached(self, fd: int, count: int, position: int) -> bool:
        return not any(name in self._paths[fd] for name in self.uncached)

    def pread_cached(self, fd: int, count: int, position: int) -> bytes | None:
        return self.pread(fd, count, position) if self.is_cached(fd, count, position) else None

    def load(self, path: Path, count: int, position: int) -> None:
        super().load(path, count, position)
        if self.forgets_loads:
            return
        self.uncached = {name for name in self.uncached if name not in str(path)}

    def _meet(self, call: str, path: str) -> None:
        fault = self._met(call, path)
        if fault is not None:
            raise OSError(fault.code, "injected")

    def _met(self, call: str, path: str) -> Fault | None:
        """The fault that this call meets; None when there is none, or it only blocked."""
        self.calls.append(Call(call, path))
        for fault in self.faults:
            if fault.call == call and fault.name in path and fault.times != 0:
                fault.hits += 1
                if fault.times is not None:
                    fault.times -= 1
                if fault.blocks is not None:
                    fault.blocks.wait()
                    return None
                return fault
        return None
