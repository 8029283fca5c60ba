from __future__ import annotations

import pytest

from rota.coordinator.metadata.store import BadNode, Create, Delete, EventType, NoNode, Set, WatchEvent
from rota.coordinator.metadata.tree import (
    NodeCreated,
    NodeDataChanged,
    NodeDeleted,
    Tree,
    check_path,
    name_of,
    parent_of,
)


def grown() -> Tree:
    tree = Tree()
    ops = [Create("/a", b"1"), Create("/a/b"), Create("/a/n-", sequential=True), Create("/e", ephemeral=True)]
    tree.apply(tree.prepare([*ops, Set("/a", b"2"), Delete("/a/b")]))
    return tree


def test_paths() -> None:
    assert (parent_of("/a/b"), parent_of("/a"), name_of("/a/b")) == ("/a", "/", "b")
    check_path("/a/b.c-d_e")
    for wrong in ("", "a", "/a/", "//", "/a/./b", "/..", "/a\0"):
        with pytest.raises(BadNode):
            check_path(wrong)


def test_preparing_changes_nothing() -> None:
    tree = Tree()
    assert tree.prepare([Create("/a"), Set("/a", b"x"), Delete("/a")]) == [
        NodeCreated("/a", b""),
        NodeDataChanged("/a", b"x", 1),
        NodeDeleted("/a"),
    ]
    with pytest.raises(NoNode):
        tree.node("/a")


def test_a_snapshot_makes_the_same_tree() -> None:
    tree, copy = grown(), Tree()
    copy.apply(tree.snapshot())
    assert copy.nodes == tree.nodes
    assert copy.prepare([Create("/a/n-", sequential=True)]) == tree.prepare([Create("/a/n-", sequential=True)])


def test_the_end_of_the_session_takes_what_is_ephemeral() -> None:
    tree = grown()
    assert tree.ephemerals() == [NodeDeleted("/e")]


def test_watches_go_off_in_the_order_of_the_changes() -> None:
    tree = grown()

    def on_node(event: WatchEvent) -> None: ...
    def on_children(event: WatchEvent) -> None: ...

    tree.watch_node("/a", on_node)
    tree.watch_node("/new", on_node)
    tree.watch_children("/", on_children)
    told = tree.apply(tree.prepare([Set("/a", b"3"), Create("/new")]))
    assert told == [
        (on_node, WatchEvent("/a", EventType.CHANGED)),
        (on_node, WatchEvent("/new", EventType.CREATED)),
        (on_children, WatchEvent("/", EventType.CHILD)),
    ]
    assert tree.apply(tree.prepare([Set("/a", b"4")])) == []
