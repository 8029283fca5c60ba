"""The watches that one session has set. Pure; a session of the embedded tree and one of ZooKeeper use it alike."""

from __future__ import annotations

from collections.abc import Iterator

from rota.coordinator.metadata.store import EventType, Watch, WatchEvent


class Watches:
    """One-shot watches by path. The same watch set twice on a path fires once (law S5)."""

    __slots__ = ("_on_children", "_on_node")

    def __init__(self) -> None:
        self._on_node: dict[str, dict[Watch, None]] = {}
        self._on_children: dict[str, dict[Watch, None]] = {}

    def watch_node(self, path: str, watch: Watch) -> None:
        """Set a watch for the next CREATED, CHANGED or DELETED."""
        self._on_node.setdefault(path, {})[watch] = None

    def watch_children(self, path: str, watch: Watch) -> None:
        """Set a watch for the next CHILD or DELETED."""
        self._on_children.setdefault(path, {})[watch] = None

    def take(self, path: str, event_type: EventType) -> list[tuple[Watch, WatchEvent]]:
        """Remove the watches that this event fires; return each with its event, in the order in which they were set."""
        watches: dict[Watch, None] = {}
        if event_type is not EventType.CHILD:
            watches = self._on_node.pop(path, watches)
        if event_type is EventType.CHILD or event_type is EventType.DELETED:
            watches = watches | self._on_children.pop(path, {})
        return [(watch, WatchEvent(path, event_type)) for watch in watches] if watches else []

    def on_nodes(self) -> Iterator[str]:
        """The paths of nodes that are watched, whether they exist or not."""
        return iter(list(self._on_node))

    def on_children(self) -> Iterator[str]:
        """The paths of nodes whose children are watched."""
        return iter(list(self._on_children))

    def clear(self) -> None:
        """Remove all watches without firing them."""
        self._on_node.clear()
        self._on_children.clear()
