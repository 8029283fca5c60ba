"""Three brokers and ZooKeeper as processes; each broker is stopped with SIGTERM and started again, under load.

Rota's steps of docs/OPERATIONS.md: the next broker is stopped when every partition has its full ISR again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.cluster_clients import (
    BEGIN_SECONDS,
    CALM_PACE_MS,
    PARTITIONS,
    TOPIC,
    WRITERS,
    Committer,
    check,
    records,
    until,
)
from tests.chaos.running_cluster import running_cluster
from tools.cluster import Cluster

pytestmark = pytest.mark.java


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path, PARTITIONS) as cluster:
        yield cluster


def test_no_error_reaches_an_application_during_a_rolling_restart(cluster: Cluster) -> None:
    """CT5, L1, O1. Producers and commits go on while each broker is away and after its return; it exits with 0."""
    writers = [writer(cluster.bootstrap, partition, CALM_PACE_MS) for partition, writer in enumerate(WRITERS)]
    committer = Committer(cluster.bootstrap, "g", CALM_PACE_MS)

    def progress() -> list[int]:
        return [*(len(writer.acknowledged) for writer in writers), committer.acknowledged]

    def go_on(why: str) -> None:
        before = progress()
        until(lambda: all(now > then for now, then in zip(progress(), before, strict=True)), why)

    stopped = list[str]()
    try:
        until(lambda: min(progress()) > 10, "the clients do not begin", BEGIN_SECONDS)
        for broker in cluster.brokers:
            stopped.append(f"{broker} stopped")
            assert cluster.stop(broker) == 0, cluster.log(broker)[-3000:]
            go_on(f"not every client goes on after {stopped}")
            cluster.start(broker)
            until(lambda: all(len(cluster.isr(TOPIC, i)) == 3 for i in range(PARTITIONS)), f"ISR small after {stopped}")
            go_on(f"not every client goes on after {stopped} and its start")
    finally:
        for client in (*writers, committer):
            client.stop()
    assert committer.errors == [], stopped
    assert committer.violations == [], stopped
    for writer in writers:
        check(writer, list(records(cluster.bootstrap, writer.partition)), stopped)
