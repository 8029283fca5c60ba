"""Takes over the topics of a broker that was alone into a cluster, when it starts in one for the first time.

Law
    MG1 Every topic of the journal, with its id, configs and partitions, is in the cluster before the journal is set
        aside; an interrupted migration is repeated and ends with the same topics.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import Create, NoNode, Set, Store, StoreFailed
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.metadata.topics import Topics

log = structlog.get_logger("rota.metadata")

MIGRATED_SUFFIX: Final = ".migrated"


async def migrate(journal: Path, cluster: Topics) -> int:
    """Create the topics of `journal` in the cluster, with this broker as their only replica; return how many.

    The journal is renamed to end in MIGRATED_SUFFIX. Without a journal nothing happens. Raises StoreFailed when the
    cluster has another topic of the same name.
    """
    if not journal.exists():
        return 0
    store = EmbeddedStore(journal)
    try:
        own = Topics(store, broker_id=cluster.broker_id, fresh_uuid=lambda: b"")
        await own.load()
        created = [await _take_over(topic, cluster) for topic in own]
        await _take_over_configs(own, cluster)
        await _reserve_producer_ids(store, cluster.store)
    finally:
        await store.close()
    journal.rename(journal.with_name(journal.name + MIGRATED_SUFFIX))
    log.info("Topics of a broker that was alone are in the cluster now", topics=sum(created), journal=str(journal))
    return sum(created)


async def _take_over_configs(own: Topics, cluster: Topics) -> None:
    """Set the configs of brokers, groups and client metrics; what the cluster has already stays. Raises StoreFailed."""
    for kind in ConfigKind:
        for name in own.configured(kind):
            configs = own.resource_configs(kind, name)
            await cluster.configs.update(kind, name, lambda before, configs=configs: {**configs, **before})  # type: ignore[misc]


async def _take_over(topic: Topic, cluster: Topics) -> bool:
    """Return whether the topic was created; False when an earlier attempt has done that."""
    other = cluster.get(topic.name)
    if other is not None and other.topic_id == topic.topic_id:
        return False
    if other is None:
        here = (cluster.broker_id,)
        states = tuple(
            replace(state, leader=cluster.broker_id, replicas=here, isr=here, leader_epoch=state.leader_epoch + 1)
            for state in topic.partitions
        )
        added = await cluster.add(replace(topic, partitions=states))
        other = added if isinstance(added, Topic) else None
    if other is None or other.topic_id != topic.topic_id:
        raise StoreFailed(
            f"topic {topic.name} of this broker's folder cannot be taken over: the cluster has another one of that "
            "name. Delete one of the two, or start this broker on an empty folder"
        )
    return True


async def _reserve_producer_ids(own: Store, cluster: Store) -> None:
    """No producer id that this broker has given is given again: the cluster goes on behind the larger block."""
    try:
        data, _ = await own.get(znodes.PRODUCER_IDS)
    except NoNode:
        return
    stat = await cluster.exists(znodes.PRODUCER_IDS)
    if stat is None:
        await cluster.commit([Create(znodes.PRODUCER_IDS, data)])
        return
    current, stat = await cluster.get(znodes.PRODUCER_IDS)
    if znodes.read_block_end(current) < znodes.read_block_end(data):
        await cluster.commit([Set(znodes.PRODUCER_IDS, data, stat.version)])
