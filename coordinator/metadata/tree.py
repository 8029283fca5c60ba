"""The tree of versioned nodes in memory: the content of the embedded store, rebuilt from its journal. Pure.

A fact is one change of a node. `prepare` converts operations into facts, or raises and changes nothing. `apply` applies
facts and returns the watches that fire. The journal has facts only, so a replay checks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

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


@dataclass(slots=True)
class Node:
    """`made` counts the children ever created under it: the next sequential number."""

    data: bytes = b""
    version: int = 0
    ephemeral: bool = False
    made: int = 0
    children: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Made:
    """A node was created. `version` is 0 except in a snapshot."""

    path: str
    data: bytes
    ephemeral: bool = False
    version: int = 0


@dataclass(frozen=True, slots=True)
class Changed:
    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Gone:
    path: str


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of children ever created under a node, for a snapshot, which has only the remaining children."""

    path: str
    made: int


@dataclass(frozen=True, slots=True)
class Numbered:
    """The number of the last change, at the end of a snapshot: its entries are fewer than the changes were."""

    path: str
    number: int


Fact = Made | Changed | Gone | Counted | Numbered


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
    if len(path.encode(errors="surrogatepass")) > PATH_BYTES_MAX:
        raise BadNode(path[:80], f"longer than {PATH_BYTES_MAX} bytes")


class Tree:
    """Nodes by path, and the watches on them. `last_change` counts what was applied."""

    __slots__ = ("_child_watches", "_node_watches", "last_change", "nodes")

    def __init__(self) -> None:
        self.last_change = 0
        self.nodes: dict[str, Node] = {"/": Node()}
        self._node_watches: dict[str, dict[Watch, None]] = {}
        self._child_watches: dict[str, dict[Watch, None]] = {}

    def node(self, path: str) -> Node:
        """Raises NoNode."""
        check_path(path)
        node = self.nodes.get(path)
        if node is None:
            raise NoNode(path)
        return node

    def stat(self, path: str) -> Stat:
        node = self.node(path)
        return Stat(node.version, node.ephemeral, len(node.children))

    def watch_node(self, path: str, watch: Watch) -> None:
        """Call `watch` at the next CREATED, CHANGED or DELETED."""
        self._node_watches.setdefault(path, {})[watch] = None

    def watch_children(self, path: str, watch: Watch) -> None:
        """Call `watch` at the next CHILD or DELETED."""
        self._child_watches.setdefault(path, {})[watch] = None

    def prepare(self, ops: Sequence[Op], pending: Trial | None = None) -> list[Fact]:
        """Return the facts of the operations, in order. Raises the first error and then changes nothing.

        `pending` holds earlier operations that are not applied yet; these come after them and are added to it.
        """
        facts: list[Fact] = []
        trial = Trial(self, pending)
        for op in ops:
            fact = trial.perform(op)
            if fact is not None:
                facts.append(fact)
        if pending is not None:
            pending.add(trial)
        return facts

    def apply(self, facts: Iterable[Fact]) -> list[tuple[Watch, WatchEvent]]:
        """Change the nodes; return the watches that fire, in order. They are no longer set."""
        events: list[tuple[Watch, WatchEvent]] = []
        self.last_change += 1
        for fact in facts:
            events += self._apply(fact)
        return events

    def ephemerals(self) -> list[Fact]:
        """Return the facts that delete the ephemeral nodes at the end of the session."""
        return [Gone(path) for path, node in self.nodes.items() if node.ephemeral]

    def snapshot(self) -> Iterator[Fact]:
        """Yield facts that build this tree from an empty one; parents first."""
        for path, node in sorted(self.nodes.items()):
            if path != "/":
                yield Made(path, node.data, node.ephemeral, node.version)
        for path, node in self.nodes.items():
            if node.made:
                yield Counted(path, node.made)
        root = self.nodes["/"]
        if root.version:
            yield Changed("/", root.data, root.version)
        yield Numbered("/", self.last_change)

    def _apply(self, fact: Fact) -> list[tuple[Watch, WatchEvent]]:
        match fact:
            case Made(path, data, ephemeral, version):
                self.nodes[path] = Node(data, version, ephemeral)
                parent = self.nodes[parent_of(path)]
                parent.children.add(name_of(path))
                parent.made += 1
                return [*self._node_events(path, EventType.CREATED), *self._child_events(parent_of(path))]
            case Changed(path, data, version):
                self.nodes[path].data, self.nodes[path].version = data, version
                return self._node_events(path, EventType.CHANGED)
            case Gone(path):
                del self.nodes[path]
                self.nodes[parent_of(path)].children.discard(name_of(path))
                gone = self._node_events(path, EventType.DELETED)
                gone += self._child_events(path, EventType.DELETED)
                return [*gone, *self._child_events(parent_of(path))]
            case Counted(path, made):
                self.nodes[path].made = made
                return []
            case Numbered(_, number):
                self.last_change = number
                return []

    def _node_events(self, path: str, what: EventType) -> list[tuple[Watch, WatchEvent]]:
        return [(watch, WatchEvent(path, what)) for watch in self._node_watches.pop(path, ())]

    def _child_events(self, path: str, what: EventType = EventType.CHILD) -> list[tuple[Watch, WatchEvent]]:
        return [(watch, WatchEvent(path, what)) for watch in self._child_watches.pop(path, ())]


@dataclass(slots=True)
class Sketch:
    """The state of a node after the operations so far."""

    version: int
    ephemeral: bool
    made: int
    children: int


class Trial:
    """Operations tried on top of a tree, and of an earlier trial, neither of which they touch."""

    __slots__ = ("_before", "_sketches", "_tree")

    def __init__(self, tree: Tree, before: Trial | None = None) -> None:
        self._tree, self._before = tree, before
        self._sketches: dict[str, Sketch | None] = {}

    def add(self, later: Trial) -> None:
        """Take over what `later`, a trial on top of this one, has changed."""
        self._sketches |= later._sketches

    def perform(self, op: Op) -> Fact | None:
        """Return the fact of one operation; None for a Check. Raises what the store's method raises."""
        check_path(op.path)
        match op:
            case Create(path, data, ephemeral, sequential):
                return self._create(path, data, ephemeral, sequential)
            case Set(path, data, version):
                _check_data(path, data)
                sketch = self._checked(path, version)
                sketch.version += 1
                return Changed(path, data, sketch.version)
            case Delete(path, version):
                return self._delete(path, version)
            case Check(path, version):
                self._checked(path, version)
                return None

    def _sketch(self, path: str) -> Sketch | None:
        if path not in self._sketches:
            self._sketches[path] = self._sketch_before(path)
        return self._sketches[path]

    def _sketch_before(self, path: str) -> Sketch | None:
        if self._before is not None:
            sketch = self._before._sketch(path)
            return None if sketch is None else replace(sketch)
        node = self._tree.nodes.get(path)
        return None if node is None else Sketch(node.version, node.ephemeral, node.made, len(node.children))

    def _checked(self, path: str, version: int) -> Sketch:
        sketch = self._sketch(path)
        if sketch is None:
            raise NoNode(path)
        if version not in (ANY_VERSION, sketch.version):
            raise BadVersion(path, f"it has version {sketch.version}, not {version}")
        return sketch

    def _create(self, path: str, data: bytes, ephemeral: bool, sequential: bool) -> Made:
        _check_data(path, data)
        if path == "/":
            raise NodeExists(path)
        parent = self._sketch(parent_of(path))
        if parent is None:
            raise NoNode(parent_of(path))
        if parent.ephemeral:
            raise NoChildrenForEphemerals(path)
        if sequential:
            path = f"{path}{parent.made:010d}"
        if self._sketch(path) is not None:
            raise NodeExists(path)
        parent.made += 1
        parent.children += 1
        self._sketches[path] = Sketch(0, ephemeral, 0, 0)
        return Made(path, data, ephemeral)

    def _delete(self, path: str, version: int) -> Gone:
        if path == "/":
            raise BadNode(path, "the root stays")
        sketch = self._checked(path, version)
        if sketch.children:
            raise NotEmpty(path)
        parent = self._sketch(parent_of(path))
        assert parent is not None, "a node outlived its parent"
        parent.children -= 1
        self._sketches[path] = None
        return Gone(path)


def _check_data(path: str, data: bytes) -> None:
    if len(data) > NODE_BYTES_MAX:
        raise BadNode(path, f"more than {NODE_BYTES_MAX} bytes")
