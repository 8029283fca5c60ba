from __future__ import annotations

import pytest

from rota.coordinator.metadata.store import BadNode, Create, Delete, EventType, NoNode, Set, Stat, WatchEvent
from rota.coordinator.metadata.tree import (
    NodeCreated,
    NodeDataChanged,
    NodeDeleted,
    Tree,
    check_path,
    name_of,
    parent_of,
)
from rota.coordinator.metadata.watches import Watches


def grown() -> Tree:
    tree = Tree()
    ops = [Create("/a", b"1"), Create("/a/b"), Create("/a/n-", sequential=True), Create("/e", ephemeral=True)]
    tree.apply(tree.prepare([*ops, Set("/a", b"2"), Delete("/a/b")], owner=7))
    return tree


def test_paths() -> None:
    assert (parent_of("/a/b"), parent_of("/a"), name_of("/a/b")) == ("/a", "/", "b")
    check_path("/a/b.c-d_e")
    for wrong in ("", "a", "/a/", "//", "/a/./b", "/..", "/a\0"):
        with pytest.raises(BadNode):
            check_path(wrong)


def test_preparing_changes_nothing() -> None:
    tree = Tree()
    assert tree.prepare([Create("/a"), Set("/a", b"x"), Delete("/a")], owner=7) == [
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
    assert copy.last_change == tree.last_change
    later = [Create("/a/n-", sequential=True)]
    assert copy.prepare(later, owner=7) == tree.prepare(later, owner=7)


def test_the_end_of_a_session_deletes_its_ephemeral_nodes() -> None:
    tree = grown()
    tree.apply(tree.prepare([Create("/f", ephemeral=True)], owner=8))
    assert tree.ephemerals(7) == [NodeDeleted("/e")]
    assert tree.ephemerals() == [NodeDeleted("/e"), NodeDeleted("/f")]


def test_a_stat_names_the_owner_and_the_changes_that_created_and_set_the_node() -> None:
    tree = grown()
    tree.apply(tree.prepare([Set("/e", b"x")], owner=8))
    assert tree.stat("/e") == Stat(version=1, owner=7, child_count=0, created=1, changed=2)
    assert tree.stat("/a") == Stat(version=1, owner=0, child_count=1, created=1, changed=1)
    assert tree.stat("/e").is_ephemeral
    assert not tree.stat("/a").is_ephemeral


def test_watches_of_all_sessions_fire_in_the_order_of_the_changes() -> None:
    tree = grown()

    def on_node(event: WatchEvent) -> None: ...
    def on_children(event: WatchEvent) -> None: ...

    tree.sessions = {7: Watches(), 8: Watches()}
    tree.sessions[7].watch_node("/a", on_node)
    tree.sessions[8].watch_node("/a", on_node)
    tree.sessions[7].watch_node("/new", on_node)
    tree.sessions[8].watch_children("/", on_children)
    fired = tree.apply(tree.prepare([Set("/a", b"3"), Create("/new")], owner=7))
    assert fired == [
        (7, on_node, WatchEvent("/a", EventType.CHANGED)),
        (8, on_node, WatchEvent("/a", EventType.CHANGED)),
        (7, on_node, WatchEvent("/new", EventType.CREATED)),
        (8, on_children, WatchEvent("/", EventType.CHILD)),
    ]
    assert tree.apply(tree.prepare([Set("/a", b"4")], owner=7)) == []
