"""Which cluster a metadata store belongs to: `/cluster/id`, as `meta.properties` of each broker's folder names it.

Law
    CI1 A broker follows the store of its own cluster only. An empty store, or that of another cluster, has no say over
        the topics of a folder: no log is deleted or thrown away because of it, at the start or in a later session.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.store import NodeExists, NoNode, Store, StoreFailed


class WrongCluster(StoreFailed):
    """The store is empty, or of another cluster."""


async def open_cluster(store: Store, cluster_id: str, fresh_id: Callable[[], str], *, is_creation_allowed: bool) -> str:
    """Create the first nodes of a new store; return its cluster's id.

    `cluster_id` is that of the broker's folder, "" of a new one. Without `is_creation_allowed` an empty
    store is refused, as it has lost its data or is the wrong one. Raises WrongCluster, StoreFailed.
    """
    if cluster_id and not is_creation_allowed and await store.exists(znodes.CLUSTER_ID) is None:
        raise WrongCluster(
            f"the broker's folder belongs to cluster {cluster_id}, and the metadata store is empty: correct "
            "zookeeper.connect and its chroot, or restore the store's data; a new cluster begins on empty log.dirs"
        )
    for path in znodes.PERSISTENT:
        await _create_unless_exists(store, path)
    await _create_unless_exists(store, znodes.CLUSTER_ID, znodes.cluster_node(cluster_id or fresh_id()))
    return await _read_id(store)


async def confirm_cluster(store: Store, cluster_id: str) -> None:
    """Raises WrongCluster, StoreFailed."""
    found = "none"
    with suppress(NoNode):
        found = await _read_id(store)
    if found != cluster_id:
        raise WrongCluster(
            f"the metadata store has lost its data: this is a broker of cluster {cluster_id}, the store's is {found}. "
            "This broker keeps its logs and waits: restore the store's data, or stop the broker"
        )


async def _read_id(store: Store) -> str:
    data, _ = await store.get(znodes.CLUSTER_ID)
    with znodes.reading(znodes.CLUSTER_ID):
        return znodes.read_cluster(data)


async def _create_unless_exists(store: Store, path: str, data: bytes = b"") -> None:
    """Other brokers may be creating it, too."""
    if await store.exists(path) is None:
        with suppress(NodeExists):
            await store.create(path, data)
