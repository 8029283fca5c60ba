"""Files that wait for their removal, because unlinking a large file takes long."""

from __future__ import annotations

from collections import deque
from itertools import count
from pathlib import Path
from typing import Final

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.files import FileSystem

DELETED: Final = ".deleted"


class Trash:
    """Files that were renamed for deletion. Unlinking a large file takes long: `empty` does it in any thread.

    A file that cannot be unlinked stays for the next time.
    """

    __slots__ = ("_numbers", "_paths", "_system")

    def __init__(self, system: FileSystem) -> None:
        self._system = system
        self._paths: deque[Path] = deque()
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._paths)

    def discard(self, path: Path) -> None:
        """Rename a file for deletion; a missing one is fine. Raises OSError."""
        deleted = path.with_name(f"{path.name}.{next(self._numbers)}{DELETED}")
        try:
            self._system.replace(path, deleted)
        except FileNotFoundError:
            return
        self._paths.append(deleted)

    def move_to(self, other: Trash) -> None:
        """Move all files to another trash."""
        other._paths += self._paths
        self._paths.clear()

    def empty(self) -> None:
        """Unlink everything that is in it now. Raises StorageFailed: the first failure."""
        failed: StorageFailed | None = None
        for _ in range(len(self._paths)):
            path = self._paths.popleft()
            try:
                self._system.unlink(path)
            except OSError as error:
                self._paths.append(path)
                failed = failed or StorageFailed(f"cannot remove {path}: {error.strerror or error}")
        if failed is not None:
            raise failed
