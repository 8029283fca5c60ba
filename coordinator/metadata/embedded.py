"""The metadata store of a single broker: the tree in memory, and a journal file that it is replayed from.

Nothing here ever waits for anything but the disk, so the coroutines finish at once (`eager.start`, `eager.now`).
A change is one frame of the journal: a JSON list of facts, as text that people can read. A journal with much in it
that no longer matters is rewritten as a snapshot, at opening and while it is open.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rota.coordinator.metadata.journal import FRAME_BYTES_MAX, Journal
from rota.coordinator.metadata.store import (
    ANY_VERSION,
    BadNode,
    Create,
    Delete,
    Op,
    Set,
    Stat,
    StoreFailed,
    Watch,
)
from rota.coordinator.metadata.tree import Changed, Counted, Fact, Gone, Made, Numbered, Tree

JOURNAL_BYTES_MAX = 16 << 20  # beyond it an open journal is rewritten as a snapshot, when that at least halves it
FACTS_PER_NODE_MAX = 2  # with more of them the journal is rewritten when it is opened


class EmbeddedStore:
    """The store as one session of one process; see `Store` for what its methods promise."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` is the journal file; None keeps everything in memory. Raises StoreFailed."""
        self._tree = Tree()
        self._journal = Journal(path) if path is not None else None
        self._compact_at = JOURNAL_BYTES_MAX
        self._closed = False
        if self._journal is not None:
            self._replay(self._journal)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        stat = self._open().stat(path)
        if watch is not None:
            self._tree.watch_node(path, watch)
        return self._tree.nodes[path].data, stat

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        present = path in self._open().nodes
        if watch is not None:
            self._tree.watch_node(path, watch)
        return self._tree.stat(path) if present else None

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        names = sorted(self._open().node(path).children)
        if watch is not None:
            self._tree.watch_children(path, watch)
        return names

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        (made,) = self._commit([Create(path, data, ephemeral, sequential)])
        return made.path

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        (changed,) = self._commit([Set(path, data, version)])
        assert isinstance(changed, Changed)
        return changed.version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._commit([Delete(path, version)])

    async def commit(self, ops: Sequence[Op]) -> None:
        self._commit(ops)

    @property
    def last_change(self) -> int:
        return self._tree.last_change

    async def close(self) -> None:
        """Closing twice is allowed. A journal that cannot be written any more is closed all the same."""
        if self._closed:
            return
        try:
            self._record(self._tree.ephemerals())
        except StoreFailed:
            pass  # the next opening ends the session instead
        finally:
            self._closed = True
            if self._journal is not None:
                self._journal.close()

    def _open(self) -> Tree:
        if self._closed:
            raise StoreFailed("the store is closed")
        return self._tree

    def _commit(self, ops: Sequence[Op]) -> list[Fact]:
        facts = self._open().prepare(ops)
        self._record(facts)
        return facts

    def _record(self, facts: list[Fact]) -> None:
        """Durable first, then true, then told."""
        if not facts:
            return
        if self._journal is not None:
            self._journal.append(_payload(facts))
        told = self._tree.apply(facts)
        if self._journal is not None and self._journal.size_bytes > self._compact_at:
            self._shrink(self._journal)
        for watch, event in told:
            watch(event)

    def _replay(self, journal: Journal) -> None:
        facts = 0
        try:
            for payload in journal.replay():
                entry = _decode(payload)
                self._tree.apply(entry)
                facts += len(entry)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise StoreFailed(f"the journal holds an entry that makes no sense: {error!r}") from error
        self._record(self._tree.ephemerals())  # the session that made them is over
        if facts > FACTS_PER_NODE_MAX * len(self._tree.nodes):
            self._compact(journal)

    def _compact(self, journal: Journal) -> None:
        journal.rewrite(_encode([fact]) for fact in self._tree.snapshot())
        self._compact_at = max(JOURNAL_BYTES_MAX, 2 * journal.size_bytes)

    def _shrink(self, journal: Journal) -> None:
        """The change is durable already, so a failure here is no failure of the change: try again later."""
        try:
            self._compact(journal)
        except StoreFailed:
            self._compact_at *= 2


def _payload(facts: Sequence[Fact]) -> bytes:
    payload = _encode(facts)
    if len(payload) > FRAME_BYTES_MAX:
        raise BadNode(facts[0].path, f"a change of more than {FRAME_BYTES_MAX} bytes")
    return payload


def _encode(facts: Sequence[Fact]) -> bytes:
    return json.dumps([_row(fact) for fact in facts], separators=(",", ":")).encode()


def _row(fact: Fact) -> list[object]:
    match fact:
        case Made(path, data, ephemeral, version):
            return ["made", path, data.decode("latin-1"), ephemeral, version]
        case Changed(path, data, version):
            return ["changed", path, data.decode("latin-1"), version]
        case Gone(path):
            return ["gone", path]
        case Counted(path, made):
            return ["counted", path, made]
        case Numbered(path, number):
            return ["numbered", path, number]


def _decode(payload: bytes) -> list[Fact]:
    return [_fact(*row) for row in json.loads(payload)]


def _fact(kind: str, path: str, *rest: object) -> Fact:
    match kind, rest:
        case "made", (str(data), bool(ephemeral), int(version)):
            return Made(path, data.encode("latin-1"), ephemeral, version)
        case "changed", (str(data), int(version)):
            return Changed(path, data.encode("latin-1"), version)
        case "gone", ():
            return Gone(path)
        case "counted", (int(made),):
            return Counted(path, made)
        case "numbered", (int(number),):
            return Numbered(path, number)
    raise ValueError(f"unknown fact {kind!r}")
