"""A tree in memory that the sessions of one process share, and a journal file that it is replayed from.

Laws
    S7  The loop never waits for the disk. One round at a time is written and synced by a thread; commits that arrive
        meanwhile form the next round and share its fsync.
    S8  A commit is checked against all commits before it, written or not, and is applied to the tree in their order
        once it is durable: readers see durable changes only.
    S9  After a failed fsync every commit raises StoreFailed until the broker has started again.

A commit is one entry of the journal: a JSON list of facts, as text that people can read. A round is one frame. A
journal in which most facts are outdated is rewritten as a snapshot, at opening and while it is open. Without a
journal, or without an event loop, a commit is applied at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from pathlib import Path

from rota.coordinator.metadata.journal import ENTRY_END, FRAME_BYTES_MAX, Journal
from rota.coordinator.metadata.store import (
    BadNode,
    Delete,
    NoNode,
    Op,
    StoreError,
    StoreFailed,
    Watch,
    WatchEvent,
)
from rota.coordinator.metadata.tree import (
    ChildrenCreated,
    Fact,
    LastChange,
    NodeCreated,
    NodeDataChanged,
    NodeDeleted,
    PendingChanges,
    Tree,
)
from rota.coordinator.metadata.watches import Watches
from rota.protocol.dataclass import dataclass

Deliver = Callable[[Watch, WatchEvent], None]

JOURNAL_BYTES_MAX = 16 << 20  # beyond it an open journal is rewritten as a snapshot, when that at least halves it
OPS_PER_SLICE = 256  # a larger commit is prepared in a turn of the loop of its own
ENDED_SESSION = 1  # the owner of what the journal says was ephemeral: no session outlives the opening
FACTS_PER_NODE_MAX = 2  # with more of them the journal is rewritten when it is opened


@dataclass(slots=True)
class _Commit:
    """A commit that is not durable yet. `done` receives its facts, or its error."""

    ops: Sequence[Op]
    session: int
    done: asyncio.Future[list[Fact]]
    facts: list[Fact] = field(default_factory=list)
    payload: bytes = b""
    refusal: StoreError | None = None  # raised once the commits before it can be read, which may be its reason (S14)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class SharedTree:
    """The tree that the sessions of one process share. `TreeSession` is the `Store` of one of them."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` is the journal file; None keeps everything in memory. Raises StoreFailed."""
        self.tree = Tree()
        self._journal = Journal(path) if path is not None else None
        self._compact_at = JOURNAL_BYTES_MAX
        self._closed = False
        self._ids = itertools.count(1)
        self._deliver: dict[int, Deliver] = {}
        self._queue: list[_Commit] = []
        self._round: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        if self._journal is not None:
            self._replay(self._journal)

    @property
    def failed(self) -> str | None:
        """Why the tree cannot be written; None while it can."""
        return None if self._journal is None else self._journal.failed

    # ---- sessions

    def open_session(self, deliver: Deliver) -> int:
        """Begin a session; return its id. `deliver` is called with each of its watches that fires, and the event."""
        session = next(self._ids)
        self._deliver[session] = deliver
        self.tree.sessions[session] = Watches()
        return session

    def is_open(self, session: int) -> bool:
        return session in self._deliver and not self._closed

    async def end_session(self, session: int) -> None:
        """Refuse its further commits, drop its watches, delete its ephemeral nodes. Raises StoreFailed."""
        if self._deliver.pop(session, None) is None:
            return
        del self.tree.sessions[session]
        await self._commit([], session)  # those under way may create more of its nodes
        while deletes := [Delete(fact.path) for fact in self.tree.ephemerals(session)]:
            with contextlib.suppress(NoNode):  # another session deleted one meanwhile
                await self._commit(deletes, session)

    async def close(self) -> None:
        """Finish the commits under way and end all sessions. Closing twice is allowed.

        A journal that cannot be written any more is closed all the same: the next opening ends the sessions.
        """
        if self._closed:
            return
        self._closed = True
        while self._round is not None:
            await asyncio.wait({self._round})
        with contextlib.suppress(StoreFailed):
            self._write_now(self.tree.ephemerals())
        self._deliver.clear()
        if self._journal is not None:
            self._journal.close()
        self._thread.shutdown()

    # ---- commits

    async def commit(self, ops: Sequence[Op], session: int) -> list[Fact]:
        """Apply all of the operations or none; return what they changed. Raises StoreError, StoreFailed."""
        if not self.is_open(session):
            raise StoreFailed("the session has ended")
        return await self._commit(ops, session)

    async def _commit(self, ops: Sequence[Op], session: int) -> list[Fact]:
        loop = _running_loop()
        if self._journal is None or loop is None:
            facts = self.tree.prepare(ops, owner=session)
            self._write_now(facts)
            return facts
        commit = _Commit(ops, session, loop.create_future())
        self._queue.append(commit)
        if self._round is None:
            self._round = loop.create_task(self._write_rounds(self._journal, loop))
        return await commit.done

    async def _write_rounds(self, journal: Journal, loop: asyncio.AbstractEventLoop) -> None:
        """S7. Run until the queue is empty."""
        try:
            while self._queue:
                commits, self._queue = self._queue, []
                await self._write_round(journal, loop, commits)
                if journal.size_bytes > self._compact_at:
                    await self._shrink(journal, loop)
        finally:
            self._round = None

    async def _write_round(self, journal: Journal, loop: asyncio.AbstractEventLoop, commits: list[_Commit]) -> None:
        try:
            ready = await self._prepare(commits)
            payloads = [commit.payload for commit in ready if commit.payload]
            if payloads:
                await loop.run_in_executor(self._thread, partial(journal.append, *payloads))
            for commit in ready:
                self._apply(commit.facts)
                if not commit.done.done():
                    commit.done.set_result(commit.facts)
            for commit in commits:
                if commit.refusal is not None:
                    commit.fail(commit.refusal)
        except Exception as error:  # noqa: BLE001  # a failed journal or a fault: no caller waits for ever
            for commit in commits:
                commit.fail(error)

    async def _prepare(self, commits: list[_Commit]) -> list[_Commit]:
        """S8. Return the commits to write in one frame. The others have their refusal, or are in the queue again."""
        pending, ready, frame_bytes = PendingChanges(self.tree), list[_Commit](), 0
        for at, commit in enumerate(commits):
            if len(commit.ops) > OPS_PER_SLICE:
                await asyncio.sleep(0)
            trial = PendingChanges(self.tree, pending)
            try:
                commit.facts = self.tree.prepare(commit.ops, trial, owner=commit.session)
                commit.payload = _payload(commit.facts) if commit.facts else b""
            except StoreError as refused:
                commit.refusal = refused
                continue
            frame_bytes += len(commit.payload) + len(ENTRY_END)
            if ready and frame_bytes > FRAME_BYTES_MAX:  # the rest belongs to the next round
                self._queue[:0] = commits[at:]
                del commits[at:]
                break
            pending.add(trial)
            ready.append(commit)
        return ready

    def _write_now(self, facts: list[Fact]) -> None:
        """Write and apply in the caller's thread: without a journal, without a loop, at opening and at closing."""
        if not facts:
            return
        if self._journal is not None:
            self._journal.append(_payload(facts))
        self._apply(facts)
        if self._journal is not None and self._journal.size_bytes > self._compact_at:
            self._compact_or_later(self._journal)

    def _apply(self, facts: list[Fact]) -> None:
        if facts:
            for session, watch, event in self.tree.apply(facts):
                deliver = self._deliver.get(session)  # a watch before it may have ended the session
                if deliver is not None:
                    deliver(watch, event)

    # ---- replay and compaction

    def _replay(self, journal: Journal) -> None:
        facts = 0
        try:
            for payload in journal.replay():
                entry = _decode(payload)
                self.tree.apply(entry)
                facts += len(entry)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise StoreFailed(f"the journal holds an invalid entry: {error!r}") from error
        self._write_now(self.tree.ephemerals())  # the session that created them has ended
        if facts > FACTS_PER_NODE_MAX * len(self.tree.nodes):
            self._compact(journal)

    def _compact(self, journal: Journal) -> None:
        journal.rewrite(_encode([fact]) for fact in self.tree.snapshot())
        self._compact_at = max(JOURNAL_BYTES_MAX, 2 * journal.size_bytes)

    def _compact_or_later(self, journal: Journal) -> None:
        try:
            self._compact(journal)
        except StoreFailed:
            self._compact_at *= 2

    async def _shrink(self, journal: Journal, loop: asyncio.AbstractEventLoop) -> None:
        """Rewrite the journal as a snapshot. A failure does not affect the durable commits; it is tried again later."""
        facts = list(self.tree.snapshot())
        try:
            await loop.run_in_executor(self._thread, journal.rewrite, (_encode([fact]) for fact in facts))
            self._compact_at = max(JOURNAL_BYTES_MAX, 2 * journal.size_bytes)
        except StoreFailed:
            self._compact_at *= 2


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _payload(facts: Sequence[Fact]) -> bytes:
    payload = _encode(facts)
    if len(payload) > FRAME_BYTES_MAX:
        raise BadNode(facts[0].path, f"a change of more than {FRAME_BYTES_MAX} bytes")
    return payload


def _encode(facts: Sequence[Fact]) -> bytes:
    return json.dumps([_row(fact) for fact in facts], separators=(",", ":")).encode()


def _row(fact: Fact) -> list[object]:
    match fact:
        case NodeCreated(path, data, owner, version, created, changed):
            # no session outlives the store: whether there is an owner is all that counts
            row = ["made", path, data.decode("latin-1"), owner != 0, version]
            return [*row, created, changed] if created else row
        case NodeDataChanged(path, data, version, changed):
            row = ["changed", path, data.decode("latin-1"), version]
            return [*row, changed] if changed else row
        case NodeDeleted(path):
            return ["gone", path]
        case ChildrenCreated(path, made):
            return ["counted", path, made]
        case LastChange(path, number):
            return ["numbered", path, number]


def _decode(payload: bytes) -> list[Fact]:
    return [_fact(*row) for row in json.loads(payload)]


def _fact(kind: str, path: str, *rest: object) -> Fact:
    match kind, rest:
        case "made", (str(data), bool(ephemeral), int(version)):
            return NodeCreated(path, data.encode("latin-1"), ENDED_SESSION * ephemeral, version)
        case "made", (str(data), bool(ephemeral), int(version), int(created), int(changed)):
            return NodeCreated(path, data.encode("latin-1"), ENDED_SESSION * ephemeral, version, created, changed)
        case "changed", (str(data), int(version)):
            return NodeDataChanged(path, data.encode("latin-1"), version)
        case "changed", (str(data), int(version), int(changed)):
            return NodeDataChanged(path, data.encode("latin-1"), version, changed)
        case "gone", ():
            return NodeDeleted(path)
        case "counted", (int(made),):
            return ChildrenCreated(path, made)
        case "numbered", (int(number),):
            return LastChange(path, number)
    raise ValueError(f"unknown fact {kind!r}")
