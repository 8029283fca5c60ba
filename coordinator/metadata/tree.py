"""The tree of versioned nodes in memory: the content of the embedded store, rebuilt from its journal. Pure.

A fact is one change of a node. `prepare` converts operations into facts, or raises and changes nothing. `apply` applies
facts and returns the watches of all sessions that fire. The journal has facts only, so a replay checks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from rota.coordinator.metadata.store import (
    ANY_VERSION,
    NODE_BYTES_MAX,
    PATH_BYTES_MAX,
    BadNode,
    BadVersion,
    Check,
    Create,
    Delete,
    EventType,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    Set,
    Stat,
    Watch,
    WatchEvent,
)
from rota.coordinator.metadata.watches import Watches
from rota.protocol.dataclass import dataclass


@dataclass(slots=True)
class Node:
    """`children_created`: how many children were ever created under it, which is the next sequential number.

    For `owner`, `created` and `changed` see `Stat`.
    """

    data: bytes = b""
    version: int = 0
    owner: int = 0
    created: int = 0
    changed: int = 0
    children_created: int = 0
    children: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class NodeCreated:
    """A node was created. `version`, `created` and `changed` are 0 except in a snapshot."""

    path: str
    data: bytes
    owner: int = 0
    version: int = 0
    created: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class NodeDataChanged:
    """A node's data were set. `changed` is 0 except in a snapshot."""

    path: str
    data: bytes
    version: int
    changed: int = 0


@dataclass(frozen=True, slots=True)
class NodeDeleted:
    path: str


@dataclass(frozen=True, slots=True)
class ChildrenCreated:
    """The number of children ever created under a node, for a snapshot, which has only the remaining children."""

    path: str
    children_created: int


@dataclass(frozen=True, slots=True)
class LastChange:
    """The number of the last change, at the end of a snapshot: its entries are fewer than the changes were."""

    path: str
    number: int


Fact = NodeCreated | NodeDataChanged | NodeDeleted | ChildrenCreated | LastChange
FiredWatch = tuple[int, Watch, WatchEvent]  # the session that set it comes first


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def check_path(path: str) -> None:
    """Raises BadNode unless it is "/" or "/name/name"."""
    if path == "/":
        return
    names = path.split("/")
    if names[0] or len(names) < 2 or any(name in ("", ".", "..") for name in names[1:]) or "\0" in path:
        raise BadNode(path, "not a path")
    try:
        if len(path.encode()) > PATH_BYTES_MAX:
            raise BadNode(path[:80], f"longer than {PATH_BYTES_MAX} bytes")
    except UnicodeEncodeError:
        raise BadNode(path, "not Unicode") from None


class Tree:
    """Nodes by path. `last_change` counts what was applied. `sessions` are the watches of each session."""

    __slots__ = ("last_change", "nodes", "sessions")

    def __init__(self) -> None:
        self.last_change = 0
        self.nodes: dict[str, Node] = {"/": Node()}
        self.sessions: dict[int, Watches] = {}

    def node(self, path: str) -> Node:
        """Raises NoNode, BadNode."""
        node = self.nodes.get(path)
        if node is None:
            check_path(path)
            raise NoNode(path)
        return node

    def stat(self, path: str) -> Stat:
        node = self.node(path)
        return Stat(node.version, node.owner, len(node.children), node.created, node.changed)

    def prepare(self, ops: Sequence[Op], pending: PendingChanges | None = None, *, owner: int) -> list[Fact]:
        """Return the facts of the operations, in order. Raises the first error and then changes nothing.

        `pending` holds earlier operations that are not applied yet; these come after them and are added to it.
        `owner` is the session that they belong to.
        """
        facts: list[Fact] = []
        changes = PendingChanges(self, pending, owner=owner)
        for op in ops:
            fact = changes.perform(op)
            if fact is not None:
                facts.append(fact)
        if pending is not None:
            pending.add(changes)
        return facts

    def apply(self, facts: Iterable[Fact]) -> list[FiredWatch]:
        """Change the nodes; return the watches that fire, in order. They are no longer set."""
        events: list[FiredWatch] = []
        self.last_change += 1
        for fact in facts:
            events += self._apply(fact)
        return events

    def ephemerals(self, owner: int | None = None) -> list[Fact]:
        """Return the facts that delete the ephemeral nodes of a session at its end; of all sessions by default."""
        return [NodeDeleted(path) for path, node in self.nodes.items() if node.owner and owner in (None, node.owner)]

    def snapshot(self) -> Iterator[Fact]:
        """Yield facts that build this tree from an empty one; parents first."""
        for path, node in sorted(self.nodes.items()):
            if path != "/":
                yield NodeCreated(path, node.data, node.owner, node.version, node.created, node.changed)
        for path, node in self.nodes.items():
            if node.children_created:
                yield ChildrenCreated(path, node.children_created)
        root = self.nodes["/"]
        if root.version:
            yield NodeDataChanged("/", root.data, root.version, root.changed)
        yield LastChange("/", self.last_change)

    def _apply(self, fact: Fact) -> list[FiredWatch]:
        match fact:
            case NodeCreated(path, data, owner, version, created, changed):
                now = self.last_change
                self.nodes[path] = Node(data, version, owner, created or now, changed or now)
                parent = self.nodes[parent_of(path)]
                parent.children.add(name_of(path))
                parent.children_created += 1
                return [*self._fire(path, EventType.CREATED), *self._fire(parent_of(path), EventType.CHILD)]
            case NodeDataChanged(path, data, version, changed):
                node = self.nodes[path]
                node.data, node.version, node.changed = data, version, changed or self.last_change
                return self._fire(path, EventType.CHANGED)
            case NodeDeleted(path):
                del self.nodes[path]
                self.nodes[parent_of(path)].children.discard(name_of(path))
                return [*self._fire(path, EventType.DELETED), *self._fire(parent_of(path), EventType.CHILD)]
            case ChildrenCreated(path, children_created):
                self.nodes[path].children_created = children_created
                return []
            case LastChange(_, number):
                self.last_change = number
                return []

    def _fire(self, path: str, event_type: EventType) -> list[FiredWatch]:
        return [
            (session, watch, event)
            for session, watches in self.sessions.items()
            for watch, event in watches.take(path, event_type)
        ]


@dataclass(slots=True)
class PendingNode:
    """The state of a node after the operations so far."""

    version: int
    ephemeral: bool
    children_created: int
    children: int


class PendingChanges:
    """Operations prepared on top of a tree and of earlier pending changes, neither of which they modify."""

    __slots__ = ("_before", "_nodes", "_owner", "_tree")

    def __init__(self, tree: Tree, before: PendingChanges | None = None, *, owner: int = 0) -> None:
        self._tree, self._before, self._owner = tree, before, owner
        self._nodes: dict[str, PendingNode | None] = {}

    def add(self, later: PendingChanges) -> None:
        """Add the nodes that `later`, prepared on top of this one, has changed."""
        self._nodes |= later._nodes

    def perform(self, op: Op) -> Fact | None:
        """Return the fact of one operation; None for a Check. Raises what the store's method raises."""
        check_path(op.path)
        match op:
            case Create(path, data, ephemeral, sequential):
                return self._create(path, data, ephemeral, sequential)
            case Set(path, data, version):
                _check_data(path, data)
                node = self._checked(path, version)
                node.version += 1
                return NodeDataChanged(path, data, node.version)
            case Delete(path, version):
                return self._delete(path, version)
            case Check(path, version):
                self._checked(path, version)
                return None

    def _pending(self, path: str) -> PendingNode | None:
        if path not in self._nodes:
            self._nodes[path] = self._pending_before(path)
        return self._nodes[path]

    def _pending_before(self, path: str) -> PendingNode | None:
        if self._before is not None:
            node = self._before._pending(path)
            return None if node is None else replace(node)
        stored = self._tree.nodes.get(path)
        if stored is None:
            return None
        return PendingNode(stored.version, stored.owner != 0, stored.children_created, len(stored.children))

    def _checked(self, path: str, version: int) -> PendingNode:
        node = self._pending(path)
        if node is None:
            raise NoNode(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersion(path, f"it has version {node.version}, not {version}")
        return node

    def _create(self, path: str, data: bytes, ephemeral: bool, sequential: bool) -> NodeCreated:
        _check_data(path, data)
        if path == "/":
            raise NodeExists(path)
        parent = self._pending(parent_of(path))
        if parent is None:
            raise NoNode(parent_of(path))
        if parent.ephemeral:
            raise NoChildrenForEphemerals(path)
        if sequential:
            path = f"{path}{parent.children_created:010d}"
        if self._pending(path) is not None:
            raise NodeExists(path)
        parent.children_created += 1
        parent.children += 1
        self._nodes[path] = PendingNode(0, ephemeral, 0, 0)
        return NodeCreated(path, data, self._owner if ephemeral else 0)

    def _delete(self, path: str, version: int) -> NodeDeleted:
        if path == "/":
            raise BadNode(path, "the root stays")
        node = self._checked(path, version)
        if node.children:
            raise NotEmpty(path)
        parent = self._pending(parent_of(path))
        assert parent is not None, "a node outlived its parent"
        parent.children -= 1
        self._nodes[path] = None
        return NodeDeleted(path)


def _check_data(path: str, data: bytes) -> None:
    if len(data) > NODE_BYTES_MAX:
        raise BadNode(path, f"more than {NODE_BYTES_MAX} bytes")
