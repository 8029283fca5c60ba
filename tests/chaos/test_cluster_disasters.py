"""Three brokers as processes whose machines all lose power, and whose ZooKeeper loses its data until it is restored.

As `test_cluster_faults`. A power cut is imitated: the processes are killed, the ends of logs that no
client was told of are cut off anywhere, and each folder names another start of its machine. Every acknowledged record
has been flushed (`log.flush.interval.messages=1`), so that a disk would have kept it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.chaos.cluster_clients import TOPIC, Writer
from tests.chaos.test_cluster_faults import PROPERTIES, check_with_faults, create_topic
from tests.soak import soak_only
from tools.networked_cluster import NetworkedCluster, missing
from tools.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.java

LOSSES = 3
DELIVERED_SECONDS = 2  # acknowledgements that the kernel still had when the brokers were killed


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NetworkedCluster]:
    reason = missing()
    if reason is not None:
        pytest.skip(f"no cluster: {reason}")
    with NetworkedCluster(tmp_path, {**PROPERTIES, "log.flush.interval.messages": "1"}) as cluster:
        create_topic(cluster)
        yield cluster


def acknowledged_ends(writers: list[Writer]) -> dict[int, int]:
    """The first offset of each partition that nobody was told of."""
    return {writer.partition: max(writer.acknowledged.values(), default=-1) + 1 for writer in writers}


def test_a_power_cut_of_all_machines_loses_nothing_that_was_acknowledged(cluster: NetworkedCluster, seed: int) -> None:
    """CM5, L1. Each broker leaves the ISRs that have other members; whoever is left has all that was flushed."""
    random = Random(seed)

    def cut_power(writers: list[Writer]) -> str:
        for broker in cluster.brokers:
            cluster.kill(broker)
        time.sleep(DELIVERED_SECONDS)
        for broker in cluster.brokers:
            cluster.lose_power(broker, TOPIC, acknowledged_ends(writers), random)
        for broker in random.sample(cluster.brokers, len(cluster.brokers)):
            cluster.start(broker, wait=False)
        for broker in cluster.brokers:
            cluster.wait(broker)
        return "power cut of all"

    check_with_faults(cluster, [cut_power], random)


@soak_only
def test_a_zookeeper_that_loses_its_data_until_it_is_restored(cluster: NetworkedCluster, seed: int) -> None:
    """CI1. On an empty ZooKeeper the brokers keep their logs and wait; with its data they go on."""
    random = Random(seed)
    assert isinstance(cluster.zookeeper, ZooKeeperServer)
    server, data = cluster.zookeeper, cluster.zookeeper.folder / "data"

    def lose_data(_: list[Writer]) -> str:
        server.kill()
        backup = data.rename(data.with_name("backup"))
        server.start()
        seconds = random.uniform(1, 8)
        time.sleep(seconds)
        server.kill()
        data.rename(data.with_name(f"empty-{time.monotonic_ns()}"))
        backup.rename(data)
        server.start()
        return f"ZooKeeper was empty for {seconds:.1f} s"

    check_with_faults(cluster, [lose_data] * LOSSES, random)
