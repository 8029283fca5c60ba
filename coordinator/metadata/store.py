"""The metadata store's contract: a small tree of versioned nodes, as ZooKeeper has it (docs/adr/0004).

Every implementation passes tests/contract/test_store.py. Methods are coroutines: a change waits for the disk or the
network. `eager_tasks.start` finishes those that do not have to wait inside the caller's own turn of the loop.

Laws
    S1  A change survives a crash once its method returned; a method that raises StoreError changes nothing.
    S2  `commit` is atomic: it applies all of its operations or none, and no reader sees a part of them.
    S3  A node's version starts at 0 and grows by one with each set; deleting and creating again starts over at 0.
    S4  An ephemeral node lives as long as the session that created it, which is its `owner`, and has no children.
    S5  A watch fires once, after the change, and before any call of its session returns a later state: for a change
        of the session's own before the changing call returns, for another session's change soon. To see the next
        change, set the watch again with the next read, so that no change between the two is missed. The same watch
        set twice on a node fires once. A watch must not raise.
    S6  A sequential node's number is larger than that of every earlier one under the same parent.
    S10 A call belongs to the session in which it was made. When the connection is lost, it waits for the next one, or
        raises StoreFailed, or OutcomeUnknown where a change was sent; it never takes effect in a later session.
    S14 A caller whose change was refused because of another change reads that change with its next call.
    S11 The watches of a session survive the loss of a connection: those of what changed meanwhile fire when there is
        a connection again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from rota.protocol.dataclass import dataclass

NODE_BYTES_MAX = (1 << 20) - (1 << 13)  # ZooKeeper's jute.maxbuffer less path, ACL and headers
PATH_BYTES_MAX = 4096
ANY_VERSION = -1


class StoreError(Exception):
    """An operation that the tree refuses. `path` is the node at fault, `why` may say more."""

    def __init__(self, path: str, why: str = "") -> None:
        super().__init__(f"{type(self).__name__}: {path}" + (f" ({why})" if why else ""))
        self.path, self.why = path, why


class NoNode(StoreError):
    """The node or its parent does not exist."""


class NodeExists(StoreError):
    """A node with that path exists."""


class BadVersion(StoreError):
    """The node has changed since the caller read it."""


class NotEmpty(StoreError):
    """A node with children cannot be deleted."""


class NoChildrenForEphemerals(StoreError):
    """The parent is ephemeral."""


class BadNode(StoreError):
    """A malformed path, or data beyond NODE_BYTES_MAX."""


class StoreFailed(Exception):
    """The disk or the connection to the store failed. Readers see no change; whether it is durable is not known."""


class ChangedByOthers(StoreFailed):
    """The store answers, but others change the same nodes each time."""


class OutcomeUnknown(StoreFailed):
    """The connection was lost after the change was sent. It was applied as a whole or not at all; read to find out."""


class SessionState(Enum):
    """The state of a session, as its client knows it."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # no connection; the session and its ephemeral nodes may or may not live on
    EXPIRED = "expired"  # the store has ended the session; its ephemeral nodes and watches are gone


class EventType(Enum):
    """The type of a watch event, with ZooKeeper's names."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILD = "child"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    path: str
    what: EventType


Watch = Callable[[WatchEvent], None]
SessionListener = Callable[[SessionState], None]


@dataclass(frozen=True, slots=True)
class Stat:
    """`owner` is the session of an ephemeral node, 0 for a persistent one.

    `created` and `changed` are the numbers of the changes (ZooKeeper's czxid and mzxid) that created the node and last
    set its data. A node that was deleted and created again has the same path and version, but another `created`.
    """

    version: int
    owner: int
    child_count: int
    created: int
    changed: int

    @property
    def is_ephemeral(self) -> bool:
        return self.owner != 0


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Succeeds when the node has that version; changes nothing."""

    path: str
    version: int


Op = Create | Set | Delete | Check


class Store(Protocol):
    """A client of the tree, with one session at a time. Paths are absolute; the root is "/" and always exists.

    When the store has ended the session, the client opens a new one without being asked to.
    """

    @property
    def commit_bytes_max(self) -> int:
        """How many bytes one commit may have, as the store encodes it; a larger one raises BadNode."""

    @property
    def session_id(self) -> int:
        """The owner of the ephemeral nodes that this session creates; not 0."""

    def on_session(self, listener: SessionListener) -> None:
        """Call `listener` at each change of the session's state.

        After EXPIRED comes CONNECTED, when the client has a new session: then `session_id` is another one, and nodes
        and watches of the old session are gone.
        """

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """A node's data. The watch reports CHANGED or DELETED. Raises NoNode (and sets no watch)."""

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat]]:
        """What `get` returns for each of the paths, with fewer round trips; they may be read one after the other.

        Raises NoNode when one does not exist; others may have their watches then.
        """

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """None when it does not exist. The watch reports CREATED, CHANGED or DELETED, for absent nodes as well."""

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Names (not paths) of the children, sorted. The watch reports CHILD or DELETED. Raises NoNode."""

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        """Returns the path, with its ten digits when sequential. Raises NodeExists, NoNode, NoChildrenForEphemerals."""

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Returns the new version. Raises NoNode, BadVersion."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Raises NoNode, BadVersion, NotEmpty."""

    async def commit(self, ops: Sequence[Op]) -> None:
        """All of them, in order, or none (ZooKeeper's multi). Raises the first operation's error."""

    @property
    def last_change(self) -> int:
        """Number of the last change that this session knows of (ZooKeeper's zxid); it only grows."""

    async def close(self) -> None:
        """End the session and delete its ephemeral nodes."""
