from __future__ import annotations

from pathlib import Path

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.standalone import Standalone

HERE = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]


async def opened(journal: Path, *, was_clean: bool) -> Standalone:
    metadata = Standalone(BrokerConfig({"node.id": "4"}), journal, "cluster")
    await metadata.open(was_clean=was_clean)
    await metadata.join(HERE, 0)
    return metadata


async def test_a_standalone_broker_is_controller_and_leads_all_partitions_of_a_new_topic(tmp_path: Path) -> None:
    metadata = await opened(tmp_path / "journal", was_clean=True)
    topics = metadata.topics
    assert topics.cluster_id == "cluster"
    created = await topics.create("t", 3)
    assert isinstance(created, Topic)
    assert all(topics.is_leader(state) for state in created.partitions)
    assert metadata.replicas_for(3) == 1
    assert topics.controller_id == 4
    await metadata.close()


async def test_leader_epochs_are_bumped_only_after_a_crash(tmp_path: Path) -> None:
    for was_clean, epoch in ((True, 0), (False, 1), (True, 1)):
        metadata = await opened(tmp_path / "journal", was_clean=was_clean)
        if "t" not in metadata.topics:
            await metadata.topics.create("t")
        state = metadata.topics.partition("t", 0)
        assert state is not None
        assert (state.leader_epoch, metadata.topics.is_leader(state)) == (epoch, True)
        await metadata.leave()
        await metadata.close()
