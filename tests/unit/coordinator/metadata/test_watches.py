from __future__ import annotations

from rota.coordinator.metadata.store import EventType, WatchEvent
from rota.coordinator.metadata.watches import Watches


def first(event: WatchEvent) -> None: ...


def second(event: WatchEvent) -> None: ...


def test_each_event_takes_the_watches_that_it_fires() -> None:
    watches = Watches()
    watches.watch_node("/a", first)
    watches.watch_children("/a", second)
    assert watches.take("/b", EventType.CREATED) == []
    assert watches.take("/a", EventType.CHILD) == [(second, WatchEvent("/a", EventType.CHILD))]
    assert watches.take("/a", EventType.CHILD) == []
    assert watches.take("/a", EventType.CHANGED) == [(first, WatchEvent("/a", EventType.CHANGED))]
    assert watches.take("/a", EventType.CHANGED) == []


def test_a_watch_on_a_node_and_its_children_fires_once_when_the_node_is_deleted() -> None:
    """Law S5."""
    watches = Watches()
    watches.watch_node("/a", first)
    watches.watch_node("/a", first)
    watches.watch_children("/a", first)
    watches.watch_children("/a", second)
    deleted = WatchEvent("/a", EventType.DELETED)
    assert watches.take("/a", EventType.DELETED) == [(first, deleted), (second, deleted)]
    assert watches.take("/a", EventType.DELETED) == []


def test_the_watched_paths_are_known_until_they_are_cleared() -> None:
    watches = Watches()
    watches.watch_node("/a", first)
    watches.watch_children("/b", first)
    assert (list(watches.on_nodes()), list(watches.on_children())) == (["/a"], ["/b"])
    watches.clear()
    assert (list(watches.on_nodes()), list(watches.on_children())) == ([], [])
    assert watches.take("/a", EventType.DELETED) == []
