"""A broker's folder and the metadata store are of one cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.changes import Change
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.identity import WrongCluster, confirm_cluster, open_cluster
from rota.coordinator.metadata.store import Store
from rota.coordinator.metadata.topics import Topics


def opened(store: Store, cluster_id: str, *, is_creation_allowed: bool) -> str:
    return run_eagerly(open_cluster(store, cluster_id, lambda: "fresh", is_creation_allowed=is_creation_allowed))


@pytest.mark.parametrize(
    ("of_folder", "is_creation_allowed", "made"), [("", False, "fresh"), ("", True, "fresh"), ("a", True, "a")]
)
def test_an_empty_store_is_a_new_cluster(of_folder: str, is_creation_allowed: bool, made: str) -> None:
    store = EmbeddedStore()
    assert opened(store, of_folder, is_creation_allowed=is_creation_allowed) == made
    assert opened(store, "another", is_creation_allowed=is_creation_allowed) == made
    run_eagerly(confirm_cluster(store, made))


def test_a_folder_of_a_cluster_makes_no_new_cluster_of_an_empty_store() -> None:
    store = EmbeddedStore()
    with pytest.raises(WrongCluster, match=r"belongs to cluster a, .* correct zookeeper.connect"):
        opened(store, "a", is_creation_allowed=False)
    assert run_eagerly(store.children("/")) == []


@pytest.mark.parametrize("change", [lambda store: store.delete(znodes.CLUSTER_ID), lambda store: renamed(store)])
def test_topics_stay_when_the_store_has_become_that_of_another_cluster(change: Callable[[Store], object]) -> None:
    store = EmbeddedStore()
    topics = Topics(store, broker_id=1, fresh_uuid=lambda: bytes(16), cluster_id="a")
    run_eagerly(topics.load())
    run_eagerly(topics.create("t"))
    changes: list[Change] = []
    topics.on_change(changes.append)
    run_eagerly(store.delete(znodes.state_path("t", 0)))
    run_eagerly(change(store))  # type: ignore[arg-type]
    with pytest.raises(WrongCluster, match="This broker keeps its logs"):
        run_eagerly(topics.refresh_all())
    assert (topics.names(), changes) == (["t"], [])


async def renamed(store: Store) -> None:
    await store.set(znodes.CLUSTER_ID, znodes.cluster_node("b"))
