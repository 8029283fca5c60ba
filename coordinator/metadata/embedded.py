"""The metadata store of a single broker: one session with a tree in its own process, and a journal file."""

from __future__ import annotations

from pathlib import Path

from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.tree_session import TreeSession


class EmbeddedStore(TreeSession):
    """The store as one session of one process; `session` opens more. See `Store` for the promises of its methods."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` is the journal file; None keeps everything in memory. Raises StoreFailed."""
        super().__init__(SharedTree(path))

    @property
    def failed(self) -> str | None:
        """Why the store cannot be written; None while it can."""
        return self._shared.failed

    def session(self) -> TreeSession:
        """Open another session with the same tree. It ends with this store at the latest."""
        return TreeSession(self._shared)

    async def close(self) -> None:
        """Finish the commits under way, end all sessions and close the journal. Closing twice is allowed."""
        self._closed = True
        await self._shared.close()
