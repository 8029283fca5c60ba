"""A file system that can lose its power: what was not synced is there, or in part, or not at all.

It is that of a journaling file system: names and cuts become durable in their order, and all of them with any fsync;
the content of a file becomes durable with its own fsync, and before that may be that of any earlier moment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rota.coordinator.log.files import Buffer, FileSystem

Name = str
SIZE_MAX = 1 << 24


@dataclass(eq=False)
class Content:
    """The contents of a file, each with its moment; those before `durable` are gone for ever."""

    moments: list[tuple[int, bytes]] = field(default_factory=lambda: [(0, b"")])
    durable: int = 0
    cut: int = 0  # the last one that a truncation has made

    def at(self, moment: int) -> int:
        return max(self.durable, *(number for number, (begun, _) in enumerate(self.moments) if begun <= moment))


class PoweredFiles(FileSystem):
    """Real files below `root`, which is empty at first."""

    __slots__ = ("_contents", "_durable", "_moment", "_names", "_pending", "_root")

    def __init__(self, root: Path) -> None:
        self._root, self._moment = root, 0
        self._names: dict[Name, Content] = {}
        self._durable: dict[Name, Content] = {}
        self._pending: list[tuple[int, dict[Name, Content]]] = []  # all names after each change of one
        self._contents: dict[int, Content | None] = {}

    def open_read(self, path: Path) -> int:
        fd = super().open_read(path)
        self._contents[fd] = self._names.get(self._name(path))
        return fd

    def open_write(self, path: Path) -> int:
        fd, name = super().open_write(path), self._name(path)
        if name not in self._names:
            self._rename({**self._names, name: Content()})
        self._contents[fd] = self._names[name]
        return fd

    def duplicate(self, fd: int) -> int:
        copied = super().duplicate(fd)
        self._contents[copied] = self._contents[fd]
        return copied

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        written = super().pwrite(fd, data, position)
        self._changed(fd)
        return written

    def ftruncate(self, fd: int, size_bytes: int) -> None:
        super().ftruncate(fd, size_bytes)
        content = self._changed(fd)
        content.cut = len(content.moments) - 1

    def fsync(self, fd: int) -> None:
        self._durable, self._pending = dict(self._names), []
        for content in self._names.values():
            content.durable = max(content.durable, content.cut)
        content_of_fd = self._contents[fd]
        if content_of_fd is not None:
            content_of_fd.durable = len(content_of_fd.moments) - 1

    def replace(self, old: Path, new: Path) -> None:
        super().replace(old, new)
        names = dict(self._names)
        names[self._name(new)] = names.pop(self._name(old))
        self._rename(names)

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self._rename({name: content for name, content in self._names.items() if name != self._name(path)})

    def lose_power(self, random: Random, target: Path) -> None:
        """Write a state that a loss of power may leave now."""
        count = random.randint(0, len(self._pending))
        names = self._pending[count - 1][1] if count else self._durable
        moment = self._pending[count][0] if count < len(self._pending) else self._moment
        for name, content in names.items():
            first = max(content.durable, content.cut) if count == len(self._pending) else content.durable
            data = content.moments[random.randint(first, max(first, content.at(moment)))][1]
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(data)

    def _name(self, path: Path) -> Name:
        return str(path.relative_to(self._root))

    def _rename(self, names: dict[Name, Content]) -> None:
        self._moment += 1
        self._names = names
        self._pending.append((self._moment, names))

    def _changed(self, fd: int) -> Content:
        content = self._contents[fd]
        assert content is not None
        self._moment += 1
        content.moments.append((self._moment, os.pread(fd, SIZE_MAX, 0)))
        return content
