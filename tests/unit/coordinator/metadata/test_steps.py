from __future__ import annotations

import pytest

from rota.coordinator.metadata.eager import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.steps import OP_BYTES, commit_in_steps, split
from rota.coordinator.metadata.store import BadVersion, Check, Create, Delete, Op, Set
from rota.coordinator.metadata.tree import Fact

OPS: list[Op] = [Create("/t"), *(Create(f"/t/{number}", b"x" * 100) for number in range(10)), Set("/t", b"done", 0)]


class SmallStore(EmbeddedStore):
    """Takes three operations at a time, and counts commits."""

    commit_bytes_max = 3 * (OP_BYTES + 110)

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[int] = []

    async def apply(self, ops: object) -> list[Fact]:
        assert isinstance(ops, list)
        self.commits.append(len(ops))
        return await super().apply(ops)


def test_what_fits_is_one_commit() -> None:
    assert split(OPS, 1 << 20) == [OPS]
    assert split([], 1 << 20) == []


def test_steps_keep_the_order_and_the_limit() -> None:
    steps = split(OPS, 3 * (OP_BYTES + 110))
    assert [op for step in steps for op in step] == OPS
    assert [len(step) for step in steps] == [3, 3, 3, 3]


def test_an_operation_beyond_the_limit_is_left_to_the_store_to_refuse() -> None:
    assert split([Delete("/a"), Create("/b", b"x" * 1000), Delete("/c")], 600) == [
        [Delete("/a")],
        [Create("/b", b"x" * 1000)],
        [Delete("/c")],
    ]


def test_the_last_operation_comes_after_all_others_and_each_commit_is_checked() -> None:
    store = SmallStore()
    run_eagerly(store.create("/epoch"))
    run_eagerly(commit_in_steps(store, OPS, checks=[Check("/epoch", 0)]))
    assert store.commits == [1, *[3] * 6]
    assert run_eagerly(store.get("/t"))[0] == b"done"
    assert len(run_eagerly(store.children("/t"))) == 10


def test_a_controller_that_was_replaced_gets_no_further() -> None:
    store = SmallStore()
    run_eagerly(store.create("/epoch"))
    run_eagerly(store.create("/t", b"begun"))

    def replaced(_: object) -> None:
        run_eagerly(store.set("/epoch", b"of another controller"))

    run_eagerly(store.exists("/t/3", replaced))
    with pytest.raises(BadVersion):
        run_eagerly(commit_in_steps(store, OPS[1:], checks=[Check("/epoch", 0)]))
    assert run_eagerly(store.get("/t"))[0] == b"begun"
    assert len(run_eagerly(store.children("/t"))) == 4
