from __future__ import annotations

from pathlib import Path

import pytest

from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import StoreFailed


def test_all_sessions_end_with_the_store(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "journal")
    session = store.session()
    run_eagerly(session.create("/kept"))
    run_eagerly(session.create("/e", ephemeral=True))
    assert run_eagerly(store.children("/")) == ["e", "kept"]
    run_eagerly(store.close())
    run_eagerly(store.close())
    for ended in (session, store):
        with pytest.raises(StoreFailed):
            run_eagerly(ended.children("/"))
    again = EmbeddedStore(tmp_path / "journal")
    assert run_eagerly(again.children("/")) == ["kept"]
    run_eagerly(again.close())


def test_a_session_that_ends_leaves_the_others_alone() -> None:
    store = EmbeddedStore()
    first, second = store.session(), store.session()
    for session, path in ((store, "/a"), (first, "/b"), (second, "/c")):
        run_eagerly(session.create(path, ephemeral=True))
    run_eagerly(first.close())
    assert run_eagerly(store.children("/")) == ["a", "c"]
    run_eagerly(store.close())
