"""What every metadata store promises to one session: laws S1 to S6; and random conversations against a model."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.soak import examples
from tools.zookeeper import ZooKeeperServer

from rota.coordinator.metadata import topic_nodes, znodes
from rota.coordinator.metadata.eager_tasks import run_eagerly, start
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import (
    ANY_VERSION,
    NODE_BYTES_MAX,
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
    Store,
    StoreError,
    StoreFailed,
    WatchEvent,
)
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topic_writer import create_nodes, delete_nodes
from rota.coordinator.metadata.zookeeper import ZooKeeperStore

NAMES = ("a", "b", "c")
PATHS = [f"/{x}" for x in NAMES] + [f"/{x}/{y}" for x in NAMES for y in NAMES] + ["/a/b/c"]
DATA = st.binary(max_size=12)
VERSIONS = st.sampled_from([ANY_VERSION, 0, 1, 2])
OPS = st.one_of(
    st.builds(Create, st.sampled_from(PATHS), DATA, st.booleans(), st.booleans()),
    st.builds(Set, st.sampled_from(PATHS), DATA, VERSIONS),
    st.builds(Delete, st.sampled_from(PATHS), VERSIONS),
    st.builds(Check, st.sampled_from(PATHS), VERSIONS),
)


# ---- the laws, one by one


async def test_a_node_is_made_read_changed_and_deleted(store: Store) -> None:
    assert await store.create("/a", b"one") == "/a"
    assert (await store.get("/a"))[0] == b"one"
    assert await store.set("/a", b"two") == 1
    data, stat = await store.get("/a")
    assert (data, stat.version, stat.is_ephemeral, stat.child_count) == (b"two", 1, False, 0)
    await store.delete("/a", 1)
    assert await store.exists("/a") is None


async def test_many_nodes_are_read_in_their_order(store: Store) -> None:
    paths = [f"/{number}" for number in range(300)]
    await store.commit([Create(path, path.encode()) for path in paths])
    await store.set("/7", b"changed")
    reverse = paths[::-1]
    read = await store.get_many(reverse)
    assert read == [await store.get(path) for path in reverse]
    assert await store.get_many([]) == []
    with pytest.raises(NoNode) as missing:
        await store.get_many(["/1", "/absent", "/2"])
    assert missing.value.path == "/absent"
    with pytest.raises(BadNode):
        await store.get_many(["/1", "no-slash"])


async def test_invalid_tree_operations_are_refused(store: Store) -> None:
    await store.create("/a")
    await store.create("/a/b")
    await store.create("/e", ephemeral=True)
    for refused, call in [
        (NodeExists, store.create("/a")),
        (NoNode, store.create("/x/y")),
        (NoNode, store.get("/x")),
        (NoNode, store.set("/x", b"")),
        (NoNode, store.delete("/x")),
        (NoNode, store.children("/x")),
        (BadVersion, store.set("/a", b"", 7)),
        (BadVersion, store.delete("/a/b", 7)),
        (NotEmpty, store.delete("/a")),
        (NoChildrenForEphemerals, store.create("/e/child")),
        (BadNode, store.create("no-slash")),
        (BadNode, store.create("/a//b")),
        (BadNode, store.create("/a/../b")),
        (BadNode, store.create("/big", b"x" * (NODE_BYTES_MAX + 1))),
        (BadNode, store.create("/" + "x" * 5000)),
        (BadNode, store.delete("/")),
        (BadNode, store.create("/\ud800")),
        (NodeExists, store.create("/")),
    ]:
        with pytest.raises(refused):
            await call
    assert await store.children("/") == ["a", "e"]
    assert await store.children("/a") == ["b"]


async def test_a_node_may_have_the_largest_data(store: Store) -> None:
    await store.create("/a", b"x" * NODE_BYTES_MAX)
    assert await store.set("/a", b"y" * NODE_BYTES_MAX) == 1
    assert (await store.get("/a"))[0] == b"y" * NODE_BYTES_MAX


async def test_a_topic_that_is_too_large_for_one_commit_is_created(store: Store) -> None:
    """A commit beyond the store's limit is refused and changes nothing."""
    for path in ("/config", "/config/topics", "/brokers", "/brokers/topics"):
        await store.create(path)
    count = 3_000
    if store.commit_bytes_max < count * 400:
        with pytest.raises(BadNode):
            await store.commit([Create("/t"), *(Create(f"/t/{number:05}", b"x" * 400) for number in range(count))])
        assert await store.exists("/t") is None
    states = tuple(PartitionState(index=index, leader=1, replicas=(1, 2, 3), isr=(1,)) for index in range(count))
    await create_nodes(store, Topic(name="t", topic_id=bytes(16), partitions=states))
    assert len(await store.children(znodes.partitions_path("t"))) == count
    assert (await store.get(znodes.topic_path("t")))[0] != topic_nodes.INCOMPLETE


async def test_a_commit_for_a_deleted_topic_does_not_change_the_next_topic_of_that_name(store: Store) -> None:
    """T2. The nodes of both topics have the same paths and versions."""
    for path in ("/config", "/config/topics", "/brokers", "/brokers/topics"):
        await store.create(path)
    state = PartitionState(index=0, leader=1, replicas=(1, 2), isr=(1, 2))
    old, new = (Topic(name="t", topic_id=bytes([number]) * 16, partitions=(state,)) for number in (1, 2))
    await create_nodes(store, old)
    await delete_nodes(store, "t")
    await create_nodes(store, new)
    write = Set(znodes.state_path("t", 0), b"new", 0)
    with pytest.raises(NoNode) as refused:
        await store.commit([topic_nodes.is_same(old), topic_nodes.fence("t", 0), write])
    assert refused.value.path == znodes.topic_id_path("t", old.topic_id)
    assert (await store.get(znodes.state_path("t", 0)))[0] == znodes.state_node(state)
    await store.commit([topic_nodes.is_same(new), topic_nodes.fence("t", 0), write])
    assert (await store.get(znodes.state_path("t", 0)))[0] == b"new"


async def test_a_commit_is_all_or_nothing(store: Store) -> None:
    await store.create("/a")
    with pytest.raises(BadVersion):
        await store.commit([Create("/a/b"), Set("/a", b"new"), Check("/a", 5)])
    assert await store.children("/a") == []
    assert (await store.get("/a"))[0] == b""
    await store.commit([Create("/a/b"), Create("/a/b/c"), Set("/a", b"new"), Check("/a", 1), Delete("/a/b/c")])
    assert await store.children("/a") == ["b"]
    assert await store.children("/a/b") == []


async def test_the_number_of_the_last_change_only_grows(store: Store) -> None:
    """With ZooKeeper, sessions that begin and changes that are refused have numbers, too."""
    before = store.last_change
    await store.create("/a")
    created = store.last_change
    _, stat = await store.get("/a")
    assert before < stat.created == created
    await store.commit([Check("/a", 0)])
    assert store.last_change >= created
    await store.set("/a", b"1")
    _, stat = await store.get("/a")
    assert created < stat.changed <= store.last_change


async def test_an_ephemeral_node_names_its_session_and_each_node_its_creation(store: Store) -> None:
    """Law S4. A broker knows its own registration of an earlier session by these (its epoch is `created`)."""
    await store.create("/e", ephemeral=True)
    stat = await store.exists("/e")
    assert stat is not None
    assert (stat.owner, stat.is_ephemeral) == (store.session_id, True)
    assert stat.created == stat.changed == store.last_change
    await store.set("/e", b"x")
    changed = await store.exists("/e")
    assert changed is not None
    assert stat.created == changed.created < changed.changed == store.last_change
    await store.delete("/e")
    await store.create("/e")
    again = await store.exists("/e")
    assert again is not None
    assert (again.owner, again.is_ephemeral) == (0, False)
    assert again.created > changed.changed


async def test_numbers_of_sequential_nodes_only_grow(store: Store) -> None:
    await store.create("/q")
    first = await store.create("/q/n-", sequential=True)
    second = await store.create("/q/n-", sequential=True)
    await store.delete(second)
    third = await store.create("/q/n-", sequential=True)
    assert first < second < third
    assert len(first) == len("/q/n-") + 10


async def test_a_watch_fires_once_and_is_set_again_with_a_read(store: Store) -> None:
    events: list[WatchEvent] = []
    assert await store.exists("/a", events.append) is None
    await store.create("/a")
    await store.set("/a", b"1")
    assert events == [WatchEvent("/a", EventType.CREATED)]
    await store.get("/a", events.append)
    await store.get("/a", events.append)
    await store.set("/a", b"2")
    await store.delete("/a")
    assert events[1:] == [WatchEvent("/a", EventType.CHANGED)]


async def test_a_children_watch_fires_for_children_and_deletion(store: Store) -> None:
    events: list[WatchEvent] = []
    await store.create("/a")
    await store.children("/a", events.append)
    await store.set("/a", b"not a child")
    assert events == []
    await store.create("/a/b")
    await store.children("/a", events.append)
    await store.delete("/a/b")
    await store.children("/a", events.append)
    await store.delete("/a")
    assert events == [
        WatchEvent("/a", EventType.CHILD),
        WatchEvent("/a", EventType.CHILD),
        WatchEvent("/a", EventType.DELETED),
    ]


async def test_a_read_that_failed_sets_no_watch(store: Store) -> None:
    events: list[WatchEvent] = []
    with pytest.raises(NoNode):
        await store.get("/a", events.append)
    with pytest.raises(NoNode):
        await store.children("/a", events.append)
    await store.create("/a")
    assert events == []


async def test_a_refused_commit_fires_nothing(store: Store) -> None:
    events: list[WatchEvent] = []
    await store.exists("/a", events.append)
    with pytest.raises(NoNode):
        await store.commit([Create("/a"), Delete("/nothing")])
    assert events == []


async def test_a_watcher_may_change_the_tree(store: Store) -> None:
    def follow(_: WatchEvent) -> None:
        start(store.create("/b"))

    await store.exists("/a", follow)
    await store.create("/a")
    await store.create("/c")
    assert await store.children("/") == ["a", "b", "c"]


async def test_calls_of_a_closed_store_fail(store: Store) -> None:
    await store.close()
    for call in (store.get("/"), store.create("/a"), store.exists("/a"), store.children("/"), store.commit([])):
        with pytest.raises(StoreFailed):
            await call


# ---- against a model


@dataclass
class ModelNode:
    data: bytes
    version: int = 0
    ephemeral: bool = False
    made: int = 0


@dataclass
class Model:
    """The tree, written as plainly as it can be."""

    nodes: dict[str, ModelNode] = field(default_factory=lambda: {"/": ModelNode(b"")})

    def children(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        return sorted(
            p[len(start) :] for p in self.nodes if p.startswith(start) and p != "/" and "/" not in p[len(start) :]
        )

    def commit(self, ops: list[Op]) -> None:
        kept = {path: ModelNode(n.data, n.version, n.ephemeral, n.made) for path, n in self.nodes.items()}
        try:
            for op in ops:
                self.perform(op)
        except StoreError:
            self.nodes = kept
            raise

    def perform(self, op: Op) -> None:
        if isinstance(op, Create):
            parent = self.nodes.get(op.path.rpartition("/")[0] or "/")
            if parent is None:
                raise NoNode(op.path)
            if parent.ephemeral:
                raise NoChildrenForEphemerals(op.path)
            path = f"{op.path}{parent.made:010d}" if op.sequential else op.path
            if path in self.nodes:
                raise NodeExists(path)
            parent.made += 1
            self.nodes[path] = ModelNode(op.data, ephemeral=op.ephemeral)
            return
        node = self.nodes.get(op.path)
        if node is None:
            raise NoNode(op.path)
        if op.version not in (ANY_VERSION, node.version):
            raise BadVersion(op.path)
        if isinstance(op, Set):
            node.data, node.version = op.data, node.version + 1
        elif isinstance(op, Delete):
            if self.children(op.path):
                raise NotEmpty(op.path)
            del self.nodes[op.path]

    def end_session(self) -> None:
        self.nodes = {path: node for path, node in self.nodes.items() if not node.ephemeral}


def outcome(call: Any) -> object:
    try:
        call()
    except StoreError as error:
        return type(error)
    return None


class Conversation(RuleBasedStateMachine):
    """A journalled store, its model, and crashes that leave any prefix of what a change wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.journal = self.folder / "metadata"
        self.store = EmbeddedStore(self.journal)
        self.model = Model()
        self.last_change = 0
        self.numbers: dict[str, tuple[int, int]] = {}  # of the changes that created and set each node
        self.was_reopened = False

    @initialize()
    def some_nodes(self) -> None:
        self.change([Create("/a"), Create("/a/b")])

    @rule(ops=st.lists(OPS, min_size=1, max_size=4))
    def change(self, ops: list[Op]) -> None:
        expected = outcome(lambda: self.model.commit(ops))
        assert outcome(lambda: run_eagerly(self.store.commit(ops))) == expected

    @rule(op=OPS, bytes_lost=st.integers(min_value=1, max_value=400))
    def crash_in_a_change(self, op: Op, bytes_lost: int) -> None:
        """The change tears at any byte: it is as if it had not been asked for."""
        before = self.journal.stat().st_size
        outcome(lambda: run_eagerly(self.store.commit([op])))
        written = self.journal.stat().st_size - before
        kept = before + max(0, written - bytes_lost)
        if written:
            self.crash(kept)
        elif not isinstance(op, Check):
            assert outcome(lambda: self.model.commit([op])) is not None

    def crash(self, kept_bytes: int) -> None:
        """The process is gone without a word; the file was left that long."""
        copy = self.folder / "copy"
        copy.write_bytes(self.journal.read_bytes()[:kept_bytes])
        run_eagerly(self.store.close())
        copy.replace(self.journal)
        self.reopened()

    def reopened(self) -> None:
        self.store = EmbeddedStore(self.journal)
        self.model.end_session()
        self.was_reopened = True

    @rule()
    def crash_between_changes(self) -> None:
        self.crash(self.journal.stat().st_size)

    @rule()
    def reopen(self) -> None:
        run_eagerly(self.store.close())
        self.reopened()

    @rule(path=st.sampled_from(PATHS))
    def watched_change(self, path: str) -> None:
        """Whatever happens to the node next, its watch says so once."""
        events: list[WatchEvent] = []
        before = run_eagerly(self.store.exists(path, events.append))
        ops: list[Op] = [Create(path, b"w")] if before is None else [Set(path, b"w"), Set(path, b"v")]
        worked = outcome(lambda: run_eagerly(self.store.commit(ops))) is None
        outcome(lambda: self.model.commit(ops))
        what = EventType.CREATED if before is None else EventType.CHANGED
        assert events == ([WatchEvent(path, what)] if worked else [])

    @invariant()
    def they_agree(self) -> None:
        assert self.store.last_change >= self.last_change
        self.last_change = self.store.last_change
        seen, numbers = {}, dict[str, tuple[int, int]]()
        todo = ["/"]
        while todo:
            path = todo.pop()
            data, stat = run_eagerly(self.store.get(path))
            names = run_eagerly(self.store.children(path))
            assert names == self.model.children(path)
            assert stat.child_count == len(names)
            seen[path] = (data, stat.version, stat.is_ephemeral)
            numbers[path] = (stat.created, stat.changed)
            todo += [f"{path.rstrip('/')}/{name}" for name in names]
        assert seen == {path: (n.data, n.version, n.ephemeral) for path, n in self.model.nodes.items()}
        if self.was_reopened:
            assert numbers.items() <= self.numbers.items()
        self.numbers, self.was_reopened = numbers, False

    def teardown(self) -> None:
        run_eagerly(self.store.close())
        shutil.rmtree(self.folder)


@settings(deadline=None, max_examples=examples(30))
@given(commits=st.lists(st.lists(OPS, min_size=1, max_size=4), max_size=12))
def test_zookeeper_agrees_with_the_model(zookeeper: ZooKeeperServer, commits: list[list[Op]]) -> None:
    asyncio.run(_compare(zookeeper, [[Create("/a"), Create("/a/b")], *commits]))


async def _compare(server: ZooKeeperServer, commits: list[list[Op]]) -> None:
    model, store = Model(), ZooKeeperStore(f"{server.address}/{uuid.uuid4().hex}")
    await store.open()
    for ops in commits:
        expected = outcome(lambda: model.commit(ops))  # noqa: B023  # called at once
        (result,) = await asyncio.gather(store.commit(ops), return_exceptions=True)
        assert expected == (None if result is None else type(result))
    for path, node in model.nodes.items():
        data, stat = await store.get(path)
        assert (data, stat.version, stat.is_ephemeral) == (node.data, node.version, node.ephemeral)
        assert await store.children(path) == model.children(path)
    await store.close()


Conversation.TestCase.settings = settings(
    deadline=None, max_examples=examples(60), stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow]
)
TestConversation = Conversation.TestCase
